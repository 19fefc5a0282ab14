import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ForkAnswer, SandboxView, SnapshotView, TemplateView } from '@sandlot/protocol'
import { type FakeCommand, FakeMachine, type FakeReply } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'

/** Sandboxes whose command `wake` is noted, and does what the test says. */
function waking(reply: (command: FakeCommand) => FakeReply = () => ({})) {
  const woken: Pick<FakeCommand, 'sandbox' | 'argv' | 'env' | 'cwd' | 'user'>[] = []
  const script = (command: FakeCommand): FakeReply => {
    if (command.argv[0] !== 'wake') return {}
    const { sandbox, argv, env, cwd, user, files } = command
    woken.push({ sandbox, argv, env, cwd, user })
    files.put('/woken', sandbox)
    return reply(command)
  }
  return { woken, options: { capabilities: { memorySnapshot: true }, script } }
}
const NO_POOL = { daemon: { poolTarget: 0 } }

const original = (at: TestDaemon, more: object = {}) =>
  at.sandbox({ checkpointable: true, env: { A: 'a' }, workdir: '/work', ...more })
const take = (at: TestDaemon, { id }: { id: string }, onRestore: unknown) =>
  at.ask('POST', `/v1/sandboxes/${id}/snapshots`, { json: { kind: 'memory', onRestore } })
const start = (at: TestDaemon, from: string, more: object = {}) =>
  at.ask('POST', '/v1/sandboxes', { json: { from, ...more } })
const saved = (at: TestDaemon) => readdir(join(at.directories.dataDirectory, 'checkpoints'))

test('it runs in each that starts, before it is anybody’s, as its commands do', async () => {
  const { woken, options } = waking()
  await using at = await startTestDaemon({ ...options, ...NO_POOL })
  const taken = await take(at, await original(at), { command: ['wake', 'up'], env: { B: 'b' } })
  expect(taken.status).toBe(201)
  const { id, onRestore } = taken.json as SnapshotView
  expect(onRestore).toEqual({ command: ['wake', 'up'], env: { B: 'b' } })
  // Its trial had it too.
  expect(woken).toMatchObject([{ env: { A: 'a', B: 'b' }, cwd: '/work', user: 'root' }])
  const next = (await start(at, id, { env: { C: 'c' }, user: '7' })).json as SandboxView
  expect(woken.at(-1)).toMatchObject({
    ...{ sandbox: next.id, argv: ['wake', 'up'], env: { A: 'a', B: 'b', C: 'c' }, user: '7' },
  })
  const woke = await at.ask('GET', `/v1/sandboxes/${next.id}/files?path=/woken`)
  expect(woke.text).toBe(next.id)
  expect((await at.ask('GET', `/v1/sandboxes/${next.id}/execs`)).json).toMatchObject({ items: [] })
  // A sandbox that goes on is no copy.
  await at.ask('POST', `/v1/sandboxes/${next.id}/pause`)
  await at.ask('POST', `/v1/sandboxes/${next.id}/resume`)
  expect(woken).toHaveLength(2)
  // What starts cold has nothing that would be restored.
  at.driver.machine.checkpoints.clear()
  const cold = await start(at, id, { ifIncompatible: 'cold' })
  expect(cold.json).toMatchObject({ origin: 'cold' })
  expect(woken).toHaveLength(2)
})

test.each([
  [{ exitCode: 3, stderr: 'one\nno such server\n' }, 'exited with 3: one\nno such server'],
  [{ signal: 9 }, 'was ended by signal 9'],
  [{ dies: 'oom_limit' } as const, 'ended the sandbox (oom_limit)'],
  [{ hangs: true, stdout: 'waiting' }, 'did not end in 1s: waiting'],
])('one that does not work is found when the snapshot is taken: %j', async (reply, message) => {
  const { options } = waking(() => reply)
  await using at = await startTestDaemon({ ...options, ...NO_POOL })
  const failed = await take(at, await original(at), { command: ['wake'], timeout: '1s' })
  expect(failed).toMatchObject({ status: 422, code: 'on_restore_failed' })
  expect(JSON.parse(failed.text).error).toMatchObject({
    ...{ fault: 'caller', retry: false, message: expect.stringContaining(message) },
  })
  expect(await saved(at)).toEqual([])
  expect((await at.ask('GET', '/v1/snapshots')).json).toMatchObject({ items: [] })
  expect(at.driver.machine.size).toBe(1)
})

test('one that fails later fails that start, and leaves nothing', async () => {
  let reply: FakeReply = {}
  const { options } = waking(() => reply)
  await using at = await startTestDaemon({ ...options, ...NO_POOL })
  const taken = (await take(at, await original(at), ['wake'])).json as SnapshotView
  reply = { exitCode: 1, stdout: 'said' }
  const size = at.driver.machine.size
  const failed = await start(at, taken.id)
  expect(failed.code).toBe('on_restore_failed')
  expect(failed.json).toMatchObject({ error: { details: { exitCode: 1, timedOut: false } } })
  expect(at.driver.machine.size).toBe(size)
  expect((await at.ask('GET', '/v1/sandboxes')).json).toMatchObject({
    items: Array(size).fill({ origin: 'cold' }),
  })
  reply = {}
  expect((await start(at, taken.id)).status).toBe(201)
})

test('each copy of a fork runs it; the files alone have nothing to restore', async () => {
  const { woken, options } = waking(() => (woken.length === 2 ? { exitCode: 4 } : {}))
  await using at = await startTestDaemon({ ...options, ...NO_POOL })
  const { id } = await original(at)
  const fork = (json: object) => at.ask('POST', `/v1/sandboxes/${id}/fork`, { json })
  const { items } = (await fork({ count: 3, onRestore: ['wake'] })).json as ForkAnswer
  expect(woken).toHaveLength(3)
  const failed = items.filter((item) => 'error' in item)
  expect(failed).toMatchObject([{ error: { code: 'on_restore_failed' } }])
  expect(at.driver.machine.size).toBe(3)
  const files = await fork({ count: 1, kind: 'filesystem', onRestore: ['wake'] })
  expect(files).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(await saved(at)).toEqual([])
})

test('a template has it, and is another one by it', async () => {
  const { woken, options } = waking()
  await using at = await startTestDaemon({ ...options, ...NO_POOL })
  const source = { kind: 'id', id: await at.image() }
  const prepare = async (more: object) => {
    const json = { source, snapshot: 'memory', ...more }
    const { text } = await at.ask('POST', '/v1/templates', { json })
    return JSON.parse(text.trim().split('\n').at(-1) ?? '').template as TemplateView
  }
  const [plain, wakes] = [await prepare({}), await prepare({ onRestore: ['wake'] })]
  expect(wakes.id).not.toBe(plain.id)
  expect(woken).toHaveLength(1)
  await start(at, plain.id)
  expect(woken).toHaveLength(1)
  await start(at, wakes.id)
  expect(woken).toHaveLength(2)
  expect((await prepare({ onRestore: { command: ['wake'] } })).id).toBe(wakes.id)
})

test('what a daemon left in the middle of it is nobody’s, and can be asked for again', async () => {
  await using directories = await testDirectories()
  const machine = new FakeMachine()
  let reply: FakeReply = {}
  const { woken, options } = waking(() => reply)
  const given = { ...options, ...NO_POOL, directories, machine }
  let from = ''
  let id = ''
  {
    await using at = await startTestDaemon(given)
    const sandbox = await original(at)
    id = sandbox.id
    from = ((await take(at, sandbox, ['wake'])).json as SnapshotView).id
    reply = { hangs: true }
    const json = { from }
    void at.ask('POST', '/v1/sandboxes', { json, idempotencyKey: 'again' }).catch(() => {})
    await until(() => woken.length === 2)
    await at.daemon.close({ sandboxes: 'keep' })
  }
  reply = {}
  await using at = await startTestDaemon(given)
  expect((await at.ask('GET', '/v1/sandboxes')).json).toMatchObject({ items: [{ id }] })
  expect(machine.size).toBe(1)
  const again = await at.ask('POST', '/v1/sandboxes', { json: { from }, idempotencyKey: 'again' })
  expect(again).toMatchObject({ status: 201, json: { origin: 'restored' } })
})
