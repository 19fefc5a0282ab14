import { expect, test } from 'vitest'
import { isWithin } from './reach.ts'

const OWN = new Set(['8.8.4.4', '2a00::5'])
const own = () => OWN

const PUBLIC = ['8.8.8.8', '2606:4700::1111', '1.1.1.1']

/** Known to the machine's own network alone: what it takes packages from may be there. */
const PRIVATE = [
  ...['10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', '203.0.113.80', '198.18.0.1'],
  ...['fd00::1', 'fec0::1', '2001:db8::1', '64:ff9b::a00:1', '2002:a00:1::', '::ffff:10.0.0.1'],
]

/** The machine itself, its neighbours on the wire, and what clouds say there. */
const NEVER = [
  ...['fd00:ec2::254', 'fd20:ce::254', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '2002:7f00:1::'],
  ...['2002:a9fe:a9fe::1', '2001:0:1:2:3:4:80ff:fffe', '::7f00:1', '::a9fe:a9fe'],
  ...['127.0.0.1', '127.8.9.1', '0.0.0.0', '0.1.2.3', '169.254.169.254', '224.0.0.1'],
  ...['255.255.255.255', '168.63.129.16', '::', '::1', 'fe80::1', 'ff02::1'],
  ...['::ffff:127.0.0.1', '::ffff:169.254.169.254', '::127.0.0.1', ...OWN, '::ffff:8.8.4.4'],
]

test('a name leads to the internet alone', () => {
  for (const address of PUBLIC)
    expect([address, isWithin('public', address, own)]).toEqual([address, true])
  for (const address of [...PRIVATE, ...NEVER, 'no address', '']) {
    expect([address, isWithin('public', address, own)]).toEqual([address, false])
  }
})

test.each(['machine', 'network'] as const)(
  'what the %s names may be private, not the machine itself',
  (reach) => {
    for (const address of [...PUBLIC, ...PRIVATE]) {
      expect([address, isWithin(reach, address, own)]).toEqual([address, true])
    }
    for (const address of NEVER) {
      expect([address, isWithin(reach, address, own)]).toEqual([address, false])
    }
  },
)

test('an address that was named is that one', () => {
  for (const address of NEVER) expect(isWithin('named', address, own)).toBe(true)
})
