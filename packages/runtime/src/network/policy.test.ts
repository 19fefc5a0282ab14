import { networkPolicy, parseNetworkHost } from '@sandlot/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalHost, parseTarget, type Target, targetOf } from './host.ts'
import { compilePolicy } from './policy.ts'

const MIRRORS = [
  { host: 'mirror.corp', port: 8080 },
  { host: '10.1.2.3', port: 80 },
]

function check(policy: unknown, target: string, reach: string | undefined): void {
  const compiled = compilePolicy(networkPolicy.parse(policy), MIRRORS)
  const parsed = parseTarget(target)
  expect([target, parsed && compiled.decide(parsed)?.reach]).toEqual([target, reach])
}

describe('what a policy allows', () => {
  test('none allows nothing', () => {
    for (const target of ['example.org:443', '127.0.0.1:80', 'mirror.corp:8080']) {
      check('none', target, undefined)
      check({ allow: [] }, target, undefined)
    }
  })

  test('a name is allowed on 80 and 443, or on the port given', () => {
    const policy = { allow: ['example.org', 'db.example.org:5432'] }
    check(policy, 'example.org:443', 'public')
    check(policy, 'example.org:80', 'public')
    check(policy, 'example.org:22', undefined)
    check(policy, 'db.example.org:5432', 'public')
    check(policy, 'db.example.org:443', undefined)
    check(policy, 'www.example.org:443', undefined)
    check(policy, 'badexample.org:443', undefined)
    check(policy, 'example.org.evil.example:443', undefined)
  })

  test('a star is any name below, and not the name itself', () => {
    const policy = { allow: ['*.example.org:8443'] }
    check(policy, 'a.example.org:8443', 'public')
    check(policy, 'a.b.example.org:8443', 'public')
    check(policy, 'example.org:8443', undefined)
    check(policy, 'aexample.org:8443', undefined)
    check(policy, 'a.example.org:443', undefined)
  })

  test('what is no host allows nothing, also where nobody refused it', () => {
    for (const entry of ['*.0.0.1', '*.127.0.0.1', '*', '', '127.1']) {
      const { decide } = compilePolicy({ allow: [entry] }, [])
      for (const host of ['127.0.0.1', '0.0.0.1', 'a.example']) {
        expect(decide({ host, isAddress: host !== 'a.example', port: 80 })).toBeUndefined()
      }
    }
  })

  test('whatever a policy may name is allowed', () => {
    const characters = 'aZ0_-.:*[]é /%１'.split('')
    const entry = fc.string({ unit: fc.constantFrom(...characters), maxLength: 12 })
    fc.assert(
      fc.property(entry, (text) => {
        const named = parseNetworkHost(text)
        if ('problem' in named) return
        const target = targetOf(
          `${named.below ? 'x.' : ''}${named.host}`,
          named.ports?.first ?? 443,
        )
        expect(target && compilePolicy({ allow: [text] }, []).decide(target)).toBeDefined()
      }),
      { numRuns: 5_000 },
    )
  })

  test('one host has one spelling', () => {
    const policy = { allow: ['Example.ORG.', 'xn--bcher-kva.example', '127.0.0.1:9', '[::1]:9'] }
    for (const target of ['EXAMPLE.org:443', 'example.org.:443']) check(policy, target, 'public')
    for (const target of [
      'bücher.example:443',
      'BÜCHER.example:443',
      'xn--bcher-kva.example.:443',
    ]) {
      check(policy, target, 'public')
    }
    const loopback = ['127.0.0.1:9', '0x7f.1:9', '2130706433:9', '0177.0.0.1:9']
    for (const target of [...loopback, '[::ffff:127.0.0.1]:9', '[::ffff:7f00:1]:9']) {
      check(policy, target, 'named')
    }
    for (const target of ['[::1]:9', '[0:0:0:0:0:0:0:1]:9']) check(policy, target, 'named')
    check({ allow: ['bücher.example'] }, 'xn--bcher-kva.example:443', 'public')
  })

  test('an address is allowed only where an entry names it', () => {
    check({ allow: ['*.example.org', 'example.org'] }, '93.184.216.34:443', undefined)
    check({ allow: ['93.184.216.34'] }, '93.184.216.34:443', 'named')
    check({ allow: ['93.184.216.34'] }, '93.184.216.35:443', undefined)
  })

  test('a network is the addresses in it, and no name', () => {
    const policy = { allow: ['10.1.2.0/24:5432', '[fd00::/8]', '93.184.0.0/16:8000-8100'] }
    check(policy, '10.1.2.0:5432', 'network')
    check(policy, '10.1.2.255:5432', 'network')
    check(policy, '10.1.3.0:5432', undefined)
    check(policy, '10.1.2.7:443', undefined)
    for (const target of ['0x0a010207:5432', '10.1.519:5432', '[::ffff:10.1.2.7]:5432']) {
      check(policy, target, 'network')
    }
    check(policy, '[fd12::1]:443', 'network')
    check(policy, '[fe12::1]:443', undefined)
    check(policy, 'db.example:5432', undefined)
    check(policy, '93.184.1.1:8050', 'network')
    check(policy, '93.184.1.1:8101', undefined)
    check({ allow: ['0.0.0.0/0:*'] }, '[fd00::1]:80', undefined)
    check({ allow: ['10.0.0.0/8', '10.0.0.5'] }, '10.0.0.5:80', 'named')
  })

  test('any port is one that is written as such', () => {
    check({ allow: ['example.org:*'] }, 'example.org:22', 'public')
    check({ allow: ['*.example.org:8000-8100'] }, 'a.example.org:8100', 'public')
    check({ allow: ['*.example.org:8000-8100'] }, 'a.example.org:7999', undefined)
  })

  test('a name that is allowed may lead to a private address that is allowed too, on its port', () => {
    const own = () => new Set(['10.1.2.9'])
    const admits = (allow: string[], target: string, address: string) =>
      compilePolicy({ allow }, [])
        .decide(parseTarget(target) as Target)
        ?.admits(address, own)
    const both = ['db.example:5432', '10.1.2.0/24:5432']
    expect(admits(both, 'db.example:5432', '10.1.2.7')).toBe(true)
    expect(admits(both, 'db.example:5432', '10.1.3.7')).toBe(false)
    expect(admits(both, 'db.example:5432', '10.1.2.9')).toBe(false)
    expect(admits(['db.example', '10.1.2.0/24:5432'], 'db.example:443', '10.1.2.7')).toBe(false)
    expect(admits(['db.example:5432', '127.0.0.1:5432'], 'db.example:5432', '127.0.0.1')).toBe(true)
    // The name alone, and the address alone, are not enough.
    expect(admits(['db.example:5432'], 'db.example:5432', '10.1.2.7')).toBe(false)
    expect(admits(['10.1.2.0/24:5432'], 'db.example:5432', '10.1.2.7')).toBeUndefined()
    expect(admits(['10.1.2.0/24:5432'], '10.1.2.9:5432', '10.1.2.9')).toBe(false)
  })

  test('a permit says which entry it is', () => {
    const rule = (allow: string[], target: string) =>
      compilePolicy({ allow }, []).decide(parseTarget(target) as Target)?.rule
    expect(rule(['*.Example.org', 'a.example.org'], 'a.example.org:443')).toBe('*.Example.org')
    expect(rule(['10.0.0.0/8'], '10.0.0.1:80')).toBe('10.0.0.0/8')
  })

  test('packages are the mirrors of the machine, on their ports', () => {
    check('packages', 'mirror.corp:8080', 'machine')
    check('packages', 'mirror.corp:443', undefined)
    check('packages', '10.1.2.3:80', 'named')
    check({ allow: ['example.org'] }, 'mirror.corp:8080', undefined)
    check({ allow: ['example.org'], packages: true }, 'mirror.corp:8080', 'machine')
    check({ allow: ['mirror.corp:8080'], packages: true }, 'mirror.corp:8080', 'machine')
  })
})

describe('targets', () => {
  test.each([
    '',
    'example.org',
    'example.org:0',
    'example.org:65536',
    'example.org:http',
    'user@example.org:80',
    'example.org/path:80',
    'a..b:80',
    '.:80',
    'exa mple:80',
    '[::1:80',
    '[fe80::1%25lo]:80',
    '%31%32%37.0.0.1:80',
    `${'a.'.repeat(150)}b:80`,
  ])('%j is none', (text) => {
    expect(parseTarget(text)).toBeUndefined()
  })

  test('an address is known as one', () => {
    expect(canonicalHost('[2001:DB8:0::1]')).toEqual({ host: '2001:db8::1', isAddress: true })
    expect(canonicalHost('::ffff:10.0.0.1')).toEqual({ host: '10.0.0.1', isAddress: true })
    expect(canonicalHost('localhost')).toEqual({ host: 'localhost', isAddress: false })
  })
})
