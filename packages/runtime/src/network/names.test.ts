import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { MachineNames } from './names.ts'
import { nameServer } from './testing/name-server.ts'

const never = new AbortController().signal

async function names(
  answers: Parameters<typeof nameServer>[0],
  files: { readonly hosts?: string; readonly resolv?: string } = {},
) {
  const stack = new AsyncDisposableStack()
  const server = stack.use(await nameServer(answers))
  const { path } = stack.use(await temporaryDirectory())
  const [hostsPath, resolvPath] = [join(path, 'hosts'), join(path, 'resolv.conf')]
  await writeFile(hostsPath, files.hosts ?? '')
  await writeFile(resolvPath, files.resolv ?? '')
  return {
    names: new MachineNames({ hostsPath, resolvPath, servers: [server.address] }),
    asked: server.asked,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('addresses of both kinds, those of IPv4 first', async () => {
  await using each = await names(() => ['2001:db8::1', '192.0.2.1', '192.0.2.2'])
  expect(await each.names.resolve('a.example', never)).toEqual([
    { address: '192.0.2.1', family: 4 },
    { address: '192.0.2.2', family: 4 },
    { address: '2001:db8::1', family: 6 },
  ])
  expect([...each.asked].sort()).toEqual(['A a.example', 'AAAA a.example'])
})

test('a name without an address has none; a server that fails is an error', async () => {
  await using each = await names((name) => (name === 'broken.example' ? 'broken' : undefined))
  expect(await each.names.resolve('gone.example', never)).toEqual([])
  await expect(each.names.resolve('broken.example', never)).rejects.toMatchObject({
    code: 'ESERVFAIL',
  })
})

test('the hosts of the machine go before its name servers', async () => {
  const hosts = `# comment
127.0.0.1 localhost Here.Example # more
::1 localhost
10.0.0.7\tmirror mirror.corp
fe80::1%lo local
nonsense name
`
  await using each = await names(() => undefined, { hosts })
  const addresses = async (name: string) =>
    (await each.names.resolve(name, never)).map(({ address }) => address)
  expect(await addresses('here.example')).toEqual(['127.0.0.1'])
  expect(await addresses('localhost')).toEqual(['127.0.0.1', '::1'])
  expect(await addresses('mirror')).toEqual(['10.0.0.7'])
  expect(each.asked.size).toBe(0)
  expect(await addresses('local')).toEqual([])
})

test('localhost and what is below it is the loopback, whatever a server says', async () => {
  await using each = await names(() => ['192.0.2.1'])
  for (const name of ['localhost', 'a.localhost']) {
    expect(await each.names.resolve(name, never)).toEqual([
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ])
  }
  expect(each.asked.size).toBe(0)
})

test('a name without a dot is looked for in the domains of the machine', async () => {
  const known: Record<string, string[]> = { 'mirror.two.corp': ['10.0.0.8'], 'a.b': ['10.0.0.9'] }
  await using each = await names((name) => known[name], {
    resolv: 'nameserver 192.0.2.9\ndomain old.corp\nsearch one.corp two.corp. .\n',
  })
  expect(await each.names.resolve('mirror', never)).toMatchObject([{ address: '10.0.0.8' }])
  expect(await each.names.resolve('a.b', never)).toMatchObject([{ address: '10.0.0.9' }])
  expect([...each.asked].filter((text) => text.startsWith('A '))).toEqual([
    ...['A mirror.one.corp', 'A mirror.two.corp', 'A a.b'],
  ])
})

test('a lookup that nobody waits for any more ends', async () => {
  await using each = await names(() => 'never')
  const gone = new AbortController()
  const resolved = each.names.resolve('slow.example', gone.signal)
  await expect.poll(() => each.asked.size).toBeGreaterThan(0)
  gone.abort(new Error('gone'))
  await expect(resolved).rejects.toThrow('gone')
  await expect(each.names.resolve('slow.example', gone.signal)).rejects.toThrow('gone')
})
