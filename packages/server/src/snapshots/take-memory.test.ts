import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { openSqliteEngine } from '@sandlot/engine'
import { newId, type SandboxView, type SnapshotView } from '@sandlot/protocol'
import type { FakeCue } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { decodeJson, encodeJson } from '../json.ts'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'

const MEMORY = { capabilities: { memorySnapshot: true }, daemon: { poolTarget: 0 } }

const NOTHING = new Uint8Array()

const saved = async (at: TestDaemon) =>
  await readdir(join(at.directories.dataDirectory, 'checkpoints'))

async function take(at: TestDaemon, sandbox: string, more: Record<string, unknown> = {}) {
  const json = { kind: 'memory', ...more }
  return await at.ask('POST', `/v1/sandboxes/${sandbox}/snapshots`, { json })
}

async function prepared(at: TestDaemon, more: Record<string, unknown> = {}): Promise<SandboxView> {
  const sandbox = await at.sandbox({ checkpointable: true, env: { A: 'taken' }, ...more })
  await at.ask('PUT', `/v1/sandboxes/${sandbox.id}/files?path=/state`, { body: 'prepared' })
  return sandbox
}

const state = async (at: TestDaemon, id: string) =>
  (await at.ask('GET', `/v1/sandboxes/${id}/files?path=/state`)).text

test('what starts from it goes on with what it was, and needs nothing of it once it is deleted', async () => {
  await using at = await startTestDaemon(MEMORY)
  const sandbox = await prepared(at, { resources: { pids: 32 } })
  const taken = await take(at, sandbox.id, { name: 'warm', tags: { a: '1' } })
  const { resources } = sandbox
  expect(taken).toMatchObject({
    status: 201,
    json: { kind: 'memory', name: 'warm', parent: sandbox.image, needs: { resources } },
  })
  const snapshot = taken.json as SnapshotView
  expect(snapshot).not.toHaveProperty('memory')
  expect(await saved(at)).toHaveLength(1)
  // Its trial is over.
  expect(at.driver.machine.size).toBe(1)
  const next = await at.sandbox({ from: snapshot.id, env: { B: 'own' } })
  expect(next).toMatchObject({
    origin: 'restored',
    checkpointable: true,
    resources,
    env: { A: 'taken', B: 'own' },
  })
  expect(await state(at, next.id)).toBe('prepared')
  const path = `/v1/snapshots/${snapshot.id}`
  expect(await at.ask('DELETE', path)).toMatchObject({ status: 409, code: 'snapshot_in_use' })
  expect((await at.ask('DELETE', `${path}?force=true`)).status).toBe(204)
  expect(await saved(at)).toEqual([])
  expect(await state(at, next.id)).toBe('prepared')
})

test('its resources are fixed', async () => {
  await using at = await startTestDaemon(MEMORY)
  const { id } = (await take(at, (await prepared(at)).id)).json as SnapshotView
  const create = (resources: object) =>
    at.ask('POST', '/v1/sandboxes', { json: { from: id, resources } })
  expect(await create({ pids: 12 })).toMatchObject({ status: 400, code: 'invalid_request' })
  expect((await create({ pids: 12 })).text).toContain('body.resources.pids')
  expect((await create({ pids: 256 })).status).toBe(201)
})

test('one from which nothing comes up is not offered', async () => {
  let cue: FakeCue
  await using at = await startTestDaemon({ ...MEMORY, onDress: () => cue })
  const sandbox = await prepared(at)
  cue = 'fail'
  expect(await take(at, sandbox.id)).toMatchObject({ status: 503, code: 'snapshot_failed' })
  cue = undefined
  expect(await saved(at)).toEqual([])
  expect((await at.ask('GET', '/v1/snapshots')).json).toMatchObject({ items: [] })
  expect(((await at.ask('GET', '/v1/images')).json as { items: [] }).items).toHaveLength(1)
  expect((await take(at, sandbox.id)).status).toBe(201)
  // The image below is one like others still.
  expect(((await at.ask('GET', '/v1/images')).json as { items: [] }).items).toHaveLength(1)
})

test('where it can’t be restored its files are started, if that was asked for', async () => {
  await using at = await startTestDaemon(MEMORY)
  const snapshot = (await take(at, (await prepared(at)).id)).json as SnapshotView
  at.driver.machine.checkpoints.clear()
  const refused = await at.ask('POST', '/v1/sandboxes', { json: { from: snapshot.id } })
  expect(refused).toMatchObject({ status: 409, code: 'snapshot_incompatible' })
  const cold = await at.sandbox({ from: snapshot.id, ifIncompatible: 'cold' })
  expect(cold).toMatchObject({ origin: 'cold', image: snapshot.image, env: { A: 'taken' } })
})

test('what is not possible is refused with what to do', async () => {
  await using at = await startTestDaemon(MEMORY)
  const { id } = await at.sandbox()
  expect(await take(at, id)).toMatchObject({ code: 'unsupported' })
  expect((await take(at, id)).text).toContain('checkpointable: true')
  const sandbox = await prepared(at)
  expect(await take(at, sandbox.id, { exclude: ['/tmp'] })).toMatchObject({
    code: 'invalid_request',
  })
  expect(await take(at, newId('sandbox'))).toMatchObject({ code: 'sandbox_unknown' })
})

test('memory without a record, and a record without memory, go at the next start', async () => {
  await using directories = await testDirectories()
  let kept: string[] = []
  let both: string[] = []
  {
    await using at = await startTestDaemon({ ...MEMORY, directories })
    const { id } = await prepared(at)
    await take(at, id, { name: 'kept' })
    kept = await saved(at)
    await take(at, id, { name: 'lost' })
    both = await saved(at)
  }
  const [lost = ''] = both.filter((name) => !kept.includes(name))
  const checkpoints = join(directories.dataDirectory, 'checkpoints')
  await mkdir(join(checkpoints, newId('snapshot')))
  await rm(join(checkpoints, lost), { recursive: true })
  await using at = await startTestDaemon({ ...MEMORY, directories })
  expect(await saved(at)).toEqual(kept)
  const { items } = (await at.ask('GET', '/v1/snapshots')).json as { items: SnapshotView[] }
  expect(items.map(({ name }) => name)).toEqual(['kept'])
})

test('one that another version of the daemon wrote is told as such, kept with all it names, and can be deleted', async () => {
  await using directories = await testDirectories()
  const { dataDirectory: directory } = directories
  let taken: SnapshotView | undefined
  {
    await using at = await startTestDaemon({ ...MEMORY, directories })
    taken = (await take(at, (await prepared(at)).id, { name: 'old' })).json as SnapshotView
  }
  const { id, image } = taken
  {
    await using engine = await openSqliteEngine({ directory: join(directory, 'engine') })
    const key = `snapshot/default/${id}`
    const { memory, ...stored } = decodeJson((await engine.kv.get(key))?.value ?? NOTHING) as {
      memory: object
    }
    // It counts its time otherwise, and knows nothing of resources.
    const { resources: _, ...rest } = memory as { resources: object }
    const old = { ...stored, memory: rest, createdAtMs: '1 May' }
    await engine.kv.put(key, encodeJson(old))
  }
  await using at = await startTestDaemon({ ...MEMORY, directories })
  expect((await at.ask('GET', '/v1/snapshots')).json).toMatchObject({ items: [] })
  const path = `/v1/snapshots/${id}`
  for (const refused of [
    await at.ask('GET', path),
    await at.ask('POST', '/v1/sandboxes', { json: { from: id } }),
  ]) {
    expect(refused).toMatchObject({ status: 409, code: 'snapshot_incompatible' })
    expect(refused.text).toContain('another version of the daemon')
  }
  expect(await saved(at)).toHaveLength(1)
  expect((await at.ask('GET', `/v1/images/${image}`)).status).toBe(200)
  expect((await at.ask('DELETE', path)).status).toBe(204)
  expect((await at.ask('GET', path)).code).toBe('snapshot_unknown')
  expect(await saved(at)).toEqual([])
})
