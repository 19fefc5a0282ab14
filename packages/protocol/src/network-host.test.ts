import { expect, test } from 'vitest'
import { LIMITS } from './limits.ts'
import { networkPolicy } from './network.ts'
import { parseNetworkHost } from './network-host.ts'

const NAMED = { host: 'example.org', below: false }
const POSTGRES = { first: 5_432, last: 5_432 }
const TLS = { first: 443, last: 443 }
const ANY = { first: 1, last: 65_535 }

test.each([
  ['example.org', { host: 'example.org', below: false }],
  ['EXAMPLE.org.', { host: 'EXAMPLE.org.', below: false }],
  [
    '*.Example.org.:8443',
    { host: 'Example.org.', below: true, ports: { first: 8443, last: 8443 } },
  ],
  ['bücher.example', { host: 'bücher.example', below: false }],
  ['*.भारत', { host: 'भारत', below: true }],
  [
    'xn--bcher-kva.example:1',
    { host: 'xn--bcher-kva.example', below: false, ports: { first: 1, last: 1 } },
  ],
  ['my_db:65535', { host: 'my_db', below: false, ports: { first: 65_535, last: 65_535 } }],
  ['localhost', { host: 'localhost', below: false }],
  ['10.0.0.5:8080', { host: '10.0.0.5', below: false, ports: { first: 8080, last: 8080 } }],
  ['[::1]:9', { host: '[::1]', below: false, ports: { first: 9, last: 9 } }],
  ['[2001:DB8::1]', { host: '[2001:DB8::1]', below: false }],
  ['*.example.org:*', { host: 'example.org', below: true, ports: { first: 1, last: 65_535 } }],
  ['example.org:8000-8100', { ...NAMED, ports: { first: 8_000, last: 8_100 } }],
  ['10.1.2.0/24', { host: '10.1.2.0', below: false, prefix: 24 }],
  ['10.1.2.0/24:5432', { host: '10.1.2.0', below: false, prefix: 24, ports: POSTGRES }],
  ['10.1.2.3/32:*', { host: '10.1.2.3', below: false, prefix: 32, ports: ANY }],
  ['0.0.0.0/0', { host: '0.0.0.0', below: false, prefix: 0 }],
  ['[fd00::/8]:443', { host: '[fd00::]', below: false, prefix: 8, ports: TLS }],
  ['[FD00:0:0:1::/64]', { host: '[FD00:0:0:1::]', below: false, prefix: 64 }],
  ['[64:ff9b::/96]', { host: '[64:ff9b::]', below: false, prefix: 96 }],
])('%s is a host', (text, host) => {
  expect(parseNetworkHost(text)).toEqual(host)
  expect(networkPolicy.safeParse({ allow: [text] }).success).toBe(true)
})

test.each([
  ['', 'is empty'],
  [' ', 'white space'],
  ['a.example b.example', 'white space'],
  ['a.example,b.example', 'is no host such as'],
  ['*', 'has a star elsewhere'],
  ['*.', 'is no host such as'],
  ['.', 'is no host such as'],
  ['**.example.org', 'has a star elsewhere'],
  ['a.*.example.org', 'has a star elsewhere'],
  ['10.0.0.*', 'has a star elsewhere'],
  ['*.127.0.0.1', 'is an address, which takes no star'],
  ['*.[::1]', 'is an address, which takes no star'],
  ['*.0.0.1', 'is the address 0.0.0.1: write it so'],
  ['127.1', 'is the address 127.0.0.1: write it so'],
  ['2130706433', 'is the address 127.0.0.1: write it so'],
  ['0x7f.0.0.1', 'is the address 127.0.0.1: write it so'],
  ['１２７.0.0.1', 'is the address 127.0.0.1: write it so'],
  ['127.0.0.1.', 'is the address 127.0.0.1: write it so'],
  ['1.2.3.4.5', 'is no host such as'],
  ['256.0.0.1', 'is no host such as'],
  ['[fd00::]/8', 'has its width behind the bracket'],
  ['fd00::/8', 'write it in brackets'],
  ['10.1.2.3/24', 'is no network: below its 24 bits'],
  ['[fd00::1/8]', 'is no network: below its 8 bits'],
  ['10.0.0.0/33', 'has no width from 0 to 32'],
  ['10.0.0.0/', 'has no width from 0 to 32'],
  ['10.0.0.0/255.0.0.0', 'has a path'],
  ['[fd00::/129]', 'has no width from 0 to 128'],
  ['*.10.0.0.0/8', 'takes no star'],
  ['abc.de/8', 'has a width behind a name'],
  ['*.[fd00::/8]', 'takes no star'],
  ['0x0a.0.0.0/8', 'is the address 10.0.0.0: write it so'],
  ['127.0.0.0/8', 'that a network entry never reaches'],
  ['127.0.0.1/32', 'that a network entry never reaches'],
  ['169.254.169.254/32:80', 'that a network entry never reaches'],
  ['0.0.0.0/8', 'that a network entry never reaches'],
  ['[::1/128]', 'that a network entry never reaches'],
  ['[fe80::/64]', 'that a network entry never reaches'],
  ['[::ffff:10.0.0.0/104]', 'that a network entry never reaches'],
  ['example.org:8100-8000', 'the lower one first'],
  ['example.org:80-', 'no range such as'],
  ['example.org:0-80', 'no range such as'],
  ['https://example.org/x', 'name its host alone, "example.org"'],
  ['example.org/x', 'has a path'],
  ['me@example.org', 'is no host such as'],
  ['example.org..', 'is no host such as'],
  ['.example.org', 'is no host such as'],
  ['a..b', 'is no host such as'],
  ['-a.example', 'is no host such as'],
  ['a%20b.example', 'is no host such as'],
  ['::1', 'an IPv6 address stands in brackets'],
  ['[::1', 'is no host such as'],
  ['[nonsense]', 'holds no IPv6 address'],
  ['[fe80::1%lo]', 'holds no IPv6 address'],
  ['[]', 'holds no IPv6 address'],
  ['example.org:', 'has no port from 1 to 65535'],
  ['example.org:0', 'has no port from 1 to 65535'],
  ['example.org:65536', 'has no port from 1 to 65535'],
  ['example.org:http', 'has no port from 1 to 65535'],
  [`${'a'.repeat(64)}.example`, 'is no host such as'],
  [`${'a.'.repeat(130)}b`, 'is longer than the 253 of a name'],
])('%j is refused by name', (text, why) => {
  const found = parseNetworkHost(text)
  expect(found).toHaveProperty('problem', expect.stringContaining(why))
  const shown = JSON.stringify(text.slice(0, 60)).slice(0, -1)
  expect((found as { problem: string }).problem).toContain(shown)
  expect((found as { problem: string }).problem.length).toBeLessThan(260)
  const issues = networkPolicy.safeParse({ allow: ['a.example', text] }).error?.issues
  expect(JSON.stringify(issues)).toContain(JSON.stringify(why).slice(1, -1))
})

test('too many hosts are refused with their limit', () => {
  const allow = Array.from({ length: LIMITS.networkHosts + 1 }, (_, at) => `h${at}.example`)
  expect(networkPolicy.safeParse({ allow: allow.slice(1) }).success).toBe(true)
  expect(JSON.stringify(networkPolicy.safeParse({ allow }).error?.issues)).toContain(
    `at most ${LIMITS.networkHosts} hosts`,
  )
})
