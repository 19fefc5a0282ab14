import { expect, test } from 'vitest'
import { LIMITS } from './limits.ts'
import { networkPolicy } from './network.ts'
import { parseNetworkHost } from './network-host.ts'

test.each([
  ['example.org', { host: 'example.org', below: false }],
  ['EXAMPLE.org.', { host: 'EXAMPLE.org.', below: false }],
  ['*.Example.org.:8443', { host: 'Example.org.', below: true, port: 8443 }],
  ['bücher.example', { host: 'bücher.example', below: false }],
  ['*.भारत', { host: 'भारत', below: true }],
  ['xn--bcher-kva.example:1', { host: 'xn--bcher-kva.example', below: false, port: 1 }],
  ['my_db:65535', { host: 'my_db', below: false, port: 65_535 }],
  ['localhost', { host: 'localhost', below: false }],
  ['10.0.0.5:8080', { host: '10.0.0.5', below: false, port: 8080 }],
  ['[::1]:9', { host: '[::1]', below: false, port: 9 }],
  ['[2001:DB8::1]', { host: '[2001:DB8::1]', below: false }],
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
  ['example.org:*', 'has a star elsewhere'],
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
  ['10.0.0.0/8', 'is a network'],
  ['[fd00::]/8', 'is a network'],
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
  expect((found as { problem: string }).problem.length).toBeLessThan(220)
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
