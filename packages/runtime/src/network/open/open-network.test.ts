import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openNameServers, PUBLIC_NAME_SERVERS } from './name-servers.ts'
import { networkTag, openNames } from './names.ts'
import { OpenNetworks } from './open-network.ts'
import { isUsableNetwork, rulesText } from './rules.ts'

test('names tell drivers and sandboxes apart, and fit into what the kernel takes', () => {
  const tag = networkTag('/run/sandlot-one')
  expect(tag).not.toBe(networkTag('/run/sandlot-two'))
  const names = openNames(tag, 'abcdefgh12345678')
  expect(names).toEqual({
    namespace: `sandlot-${tag}-abcdefgh12345678`,
    namespacePath: `/run/netns/sandlot-${tag}-abcdefgh12345678`,
    link: `sl${tag}abcdefgh`,
    router: `sandlot-${tag}-router`,
  })
  expect(names.link.length).toBeLessThanOrEqual(15)
})

test.each([
  ['100.121.0.0/16', true],
  ['10.200.0.0/28', true],
  ['10.200.0.1/28', false],
  ['10.200.0.0/29', false],
  ['0.0.0.0/0', false],
  ['fd00::/8', false],
  ['100.121.0.0', false],
  ['', false],
])('%j as a network of sandboxes: %s', (text, wanted) => {
  expect(isUsableNetwork(text)).toBe(wanted)
})

test('settings that can’t be are refused by name', () => {
  const open = (addresses: string, nameServers: string[] = []) =>
    new OpenNetworks('abcde', { addresses, nameServers })
  expect(() => open('all')).toThrow('SANDLOT_OPEN_ADDRESSES: "all"')
  expect(() => open('100.121.0.0/16', ['1.1.1.1', 'dns'])).toThrow(
    'SANDLOT_OPEN_NAME_SERVERS: "dns"',
  )
})

test.each([{ at: 'machine' }, { at: 'router', own: ['198.51.100.7'] }] as const)(
  'the sandboxes’ own network is denied too, and rules name one driver’s links alone: %j',
  (place) => {
    const rules = rulesText('abcde', '203.0.113.0/24', place)
    expect(rules).toContain('169.254.0.0/16')
    expect(rules).toMatch(/elements = \{.*203\.0\.113\.0\/24/)
    expect(
      rules.match(/[io]ifname (?:!= )?"[^"]*"/g)?.every((each) => each.includes('"slabcde*"')),
    ).toBe(true)
  },
)

test('name servers: those set, else the machine’s public ones, else public ones', async () => {
  expect(await openNameServers(['9.9.9.9'])).toEqual(['9.9.9.9'])
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-names-'))
  const path = join(directory, 'resolv.conf')
  await writeFile(
    path,
    'nameserver 127.0.0.53\nnameserver 10.0.0.2\n nameserver 8.8.4.4\nnameserver 9.9.9.9\n',
  )
  expect(await openNameServers([], path)).toEqual(['9.9.9.9'])
  await writeFile(path, 'nameserver 169.254.169.253\nnameserver fd00::1\n')
  expect(await openNameServers(undefined, path)).toEqual(PUBLIC_NAME_SERVERS)
  await rm(directory, { recursive: true })
})
