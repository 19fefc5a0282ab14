/** What a sandbox may reach while it runs, and the log of it, over HTTP. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type NetworkLogEntry, type NetworkLogPage, networkInForce } from '@sandlot/protocol'
import { FakeDriver, FakeMachine } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'

/** What a process inside would do. */
interface Inside {
  port?: number
  listen(port: number): Promise<void>
  connect(): NodeJS.ReadWriteStream & { destroyed: boolean }
}

function inside(at: TestDaemon, id: string): Inside {
  const found = at.driver.machine.all().find((each) => each.id === id)
  return found?.guest.relay as unknown as Inside
}

async function ask(at: TestDaemon, id: string, host: string) {
  const connection = inside(at, id).connect()
  connection.write(`CONNECT ${host} HTTP/1.1\r\n\r\n`)
  const [answer] = await once(connection, 'data')
  return { connection, status: String(answer).slice(9, 12) }
}

async function set(at: TestDaemon, id: string, policy: unknown) {
  return await at.ask('PUT', `/v1/sandboxes/${id}/network`, { json: { policy } })
}

async function log(at: TestDaemon, id: string, query = ''): Promise<NetworkLogPage> {
  return (await at.ask('GET', `/v1/sandboxes/${id}/network/log${query}`)).json
}

function kinds({ items }: NetworkLogPage): string[] {
  return items.map((item: NetworkLogEntry) =>
    item.kind === 'refused' ? `refused ${item.reason}` : item.kind,
  )
}

async function listener() {
  const server = createServer((socket) => socket.on('error', () => {}))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(server, { host: `127.0.0.1:${(server.address() as AddressInfo).port}` })
}

test('a policy that is set is in force when it is answered, closes what it refuses, and is told', async () => {
  await using server = await listener()
  await using at = await startTestDaemon()
  const { id } = await at.sandbox({ network: { allow: [server.host] } })
  const { connection, status } = await ask(at, id, server.host)
  expect(status).toBe('200')
  const policy = { allow: ['other.example'], limits: { connections: 5, bytes: '1MiB' } }
  const answer = await set(at, id, policy)
  expect(answer.status).toBe(200)
  const inForce = networkInForce.parse(answer.json)
  expect(inForce).toMatchObject({
    phase: 'agent',
    policy: { allow: ['other.example'], limits: { connections: 5, bytes: 2 ** 20 } },
    limits: { connections: 5, connectionsPerMinute: 6_000, bytes: 2 ** 20, bytesPerSecond: null },
  })
  await expect.poll(() => connection.destroyed).toBe(true)
  expect((await ask(at, id, server.host)).status).toBe('403')
  expect((await at.ask('GET', `/v1/sandboxes/${id}/network`)).json).toMatchObject({
    policy: inForce.policy,
    connections: 0,
  })
  expect((await at.ask('GET', `/v1/sandboxes/${id}`)).json).toMatchObject({
    network: { allows: { agent: inForce.policy } },
  })
  expect(kinds(await log(at, id))).toEqual(['opened', 'policy', 'closed', 'refused not_allowed'])
})

test('one that was made without a network gets one, and loses it again', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  expect(inside(at, id).port).toBeUndefined()
  expect((await set(at, id, { allow: ['127.0.0.1:1'] })).status).toBe(200)
  expect((await ask(at, id, '127.0.0.1:1')).status).toBe('502')
  expect(await at.ask('GET', `/v1/sandboxes/${id}/network`)).toMatchObject({ status: 200 })
  expect((await set(at, id, 'none')).json).toMatchObject({ policy: 'none' })
  expect((await ask(at, id, '127.0.0.1:1')).status).toBe('403')
})

test('where a process inside has the port, nothing is changed and the reason is said', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  const relay = inside(at, id)
  relay.listen = () => Promise.reject(new Error('listener on port 61080: EADDRINUSE'))
  const refused = await set(at, id, { allow: ['a.example'] })
  expect(refused).toMatchObject({ status: 409, code: 'network_unchanged' })
  expect(refused.text).toContain('a process inside has the port 61080')
  expect((await at.ask('GET', `/v1/sandboxes/${id}`)).json).toMatchObject({
    network: { allows: { agent: 'none' } },
  })
})

test('what can’t be set is refused by name, and changes nothing', async () => {
  const capabilities = { memorySnapshot: true }
  await using at = await startTestDaemon({ capabilities })
  const { id } = await at.sandbox({ network: { allow: ['a.example'] }, checkpointable: true })
  for (const [policy, why] of [
    [{ allow: ['10.0.0.1/8'] }, 'is no network'],
    [{ allow: ['a.example'], limits: { connections: 0 } }, 'connections'],
    [{ allow: ['a.example'], limits: { connections: 129 } }, 'connections'],
    [{ allow: ['a.example'], limits: { bytesPerSecond: 1 } }, 'slower than 1024 bytes a second'],
    [{ allow: ['a.example'], limits: { byte: 1 } }, 'byte'],
    ['everything', 'policy'],
  ] as const) {
    const refused = await set(at, id, policy)
    expect([policy, refused.status, refused.code]).toEqual([policy, 400, 'invalid_request'])
    expect(refused.text).toContain(why)
  }
  expect((await at.ask('POST', `/v1/sandboxes/${id}/pause`)).status).toBe(200)
  expect(await set(at, id, 'none')).toMatchObject({ status: 409, code: 'sandbox_paused' })
  await at.ask('POST', `/v1/sandboxes/${id}/resume`)
  expect((await at.ask('GET', `/v1/sandboxes/${id}/network`)).json).toMatchObject({
    policy: { allow: ['a.example'] },
  })
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  expect(await set(at, id, 'none')).toMatchObject({ status: 410, code: 'sandbox_gone' })
  expect(await set(at, 'sb_00000000000000000000', 'none')).toMatchObject({ status: 404 })
})

test('policy, limits and log are there after a pause, a fork and another daemon', async () => {
  await using directories = await testDirectories()
  const machine = new FakeMachine()
  const capabilities = { memorySnapshot: true }
  const start = () => {
    const driver = new FakeDriver({ machine, capabilities })
    return startTestDaemon({ directories, driver })
  }
  const policy = { allow: ['127.0.0.1:1'], limits: { connections: 7 } }
  let at = await start()
  const { id } = await at.sandbox({ checkpointable: true })
  await set(at, id, policy)
  expect((await ask(at, id, '127.0.0.1:2')).status).toBe('403')
  await at.ask('POST', `/v1/sandboxes/${id}/pause`)
  await at.ask('POST', `/v1/sandboxes/${id}/resume`)
  const check = async (of: string) => {
    // It is answered once the daemon has its way out again.
    const { json } = await at.ask('GET', `/v1/sandboxes/${of}/network`)
    expect((await ask(at, of, '127.0.0.1:1')).status).toBe('502')
    expect((await ask(at, of, '127.0.0.1:2')).status).toBe('403')
    expect(json).toMatchObject({ policy, limits: { connections: 7 } })
  }
  await check(id)
  const forked = await at.ask('POST', `/v1/sandboxes/${id}/fork`, { json: { count: 1 } })
  const { items } = forked.json as { items: { sandbox: { id: string } }[] }
  const copy = items[0]?.sandbox.id as string
  await check(copy)
  const before = (await log(at, id)).items.length
  await at.daemon.close({ sandboxes: 'keep' })
  at = await start()
  await using _ = at
  await check(id)
  await check(copy)
  const after = await log(at, id)
  expect(after.items.length).toBeGreaterThanOrEqual(before + 2)
  expect(after.items.map(({ seq }) => seq)).toEqual(after.items.map((_item, n) => n + 1))
})

test('the log is followed while it grows, and read after the end', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox({ network: { allow: ['127.0.0.1:1'] } })
  const following = log(at, id, '?from=1&wait=20s')
  await ask(at, id, '127.0.0.1:2')
  expect(await following).toMatchObject({
    items: [{ kind: 'refused', target: '127.0.0.1:2', detail: expect.stringContaining('allow') }],
    next: 2,
    over: false,
  })
  const ending = log(at, id, '?from=2&wait=20s')
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  expect(await ending).toEqual({ items: [], next: 2, over: true })
  expect(await log(at, id)).toMatchObject({ items: [{ target: '127.0.0.1:2' }], over: true })
  const quiet = await at.sandbox()
  expect(await log(at, quiet.id)).toEqual({ items: [], next: 1, over: false })
})

test('a limit that is met is a flag of the sandbox', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox({
    network: { allow: ['127.0.0.1:1'], limits: { connectionsPerMinute: 1 } },
  })
  await ask(at, id, '127.0.0.1:1')
  expect((await ask(at, id, '127.0.0.1:1')).status).toBe('429')
  expect(kinds(await log(at, id))).toEqual(['refused unreachable', 'refused rate_limit'])
})
