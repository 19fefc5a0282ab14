import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SandboxView, SnapshotView } from '@sandlot/protocol'
import { FakeDriver, type FakeDriverOptions } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import type { DaemonInput } from '../config.ts'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'

const POOL = 2

/** A daemon that can save memory, and a snapshot of a sandbox that has ended. */
async function withSnapshot(daemon: DaemonInput = {}, options: FakeDriverOptions = {}) {
  const driver = new FakeDriver({ capabilities: { memorySnapshot: true }, ...options })
  const at = await startTestDaemon({ driver, daemon: { poolTarget: POOL, ...daemon } })
  const { id } = await at.sandbox({ checkpointable: true })
  await at.ask('PUT', `/v1/sandboxes/${id}/files?path=/state`, { body: 'saved' })
  const json = { kind: 'memory' }
  const taken = await at.ask('POST', `/v1/sandboxes/${id}/snapshots`, { json })
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  const snapshot = taken.json as SnapshotView
  return {
    at,
    driver,
    snapshot,
    start: async (): Promise<SandboxView> => {
      const sandbox = await at.sandbox({ from: snapshot.id })
      const state = await at.ask('GET', `/v1/sandboxes/${sandbox.id}/files?path=/state`)
      expect(state.text).toBe('saved')
      return sandbox
    },
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  }
}

async function gauge(at: TestDaemon, name: string): Promise<number> {
  const lines = (await at.ask('GET', '/metrics')).text.split('\n')
  return Number(lines.find((line) => line.startsWith(`sandlot_${name} `))?.split(' ')[1])
}

const copies = (at: TestDaemon) => gauge(at, 'pool_copies{state="ready"}')
const end = (at: TestDaemon, { id }: SandboxView) => at.ask('DELETE', `/v1/sandboxes/${id}`)

test('who starts from a snapshot again takes a copy that waits, of which nothing keeps the snapshot', async () => {
  await using each = await withSnapshot()
  const { at, driver, snapshot } = each
  // Its trial was no demand.
  expect(await copies(at)).toBe(0)
  const first = await each.start()
  expect(first).toMatchObject({ origin: 'restored' })
  await until(async () => (await copies(at)) === 1)
  const second = await each.start()
  expect(second).toMatchObject({ origin: 'restored-ahead', checkpointable: true })
  expect(second.env).toEqual(first.env)
  await until(async () => (await copies(at)) === 1)
  expect(await gauge(at, 'pool_copy_takes{how="hit"}')).toBe(1)
  for (const sandbox of [first, second]) await end(at, sandbox)
  expect((await at.ask('DELETE', `/v1/snapshots/${snapshot.id}`)).status).toBe(204)
  expect(await copies(at)).toBe(0)
  expect(await readdir(join(at.directories.dataDirectory, 'checkpoints'))).toEqual([])
  await until(() => driver.machine.size === POOL)
})

test('a copy that fails when it is taken costs its owner nothing', async () => {
  let fail = false
  const onDress = () => {
    const cue = fail ? 'fail' : undefined
    fail = false
    return cue
  }
  await using each = await withSnapshot({}, { onDress })
  await each.start()
  await until(async () => (await copies(each.at)) === 1)
  fail = true
  expect(await each.start()).toMatchObject({ origin: 'restored' })
})

test('after an idle time nothing waits', async () => {
  await using each = await withSnapshot({ poolIdleMs: 50 })
  const { at, driver } = each
  const sandbox = await each.start()
  await until(async () => (await gauge(at, 'pool_blanks{state="ready"}')) === POOL)
  await end(at, sandbox)
  await until(() => driver.machine.size === 0)
  expect(await gauge(at, 'pool_bytes{of="used"}')).toBe(0)
  expect(await each.start()).toMatchObject({ origin: 'restored' })
  await until(async () => (await gauge(at, 'pool_blanks{state="ready"}')) === POOL)
})
