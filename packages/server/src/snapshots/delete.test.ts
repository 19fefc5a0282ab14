import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Engine } from '@sandlot/engine'
import { newId, type SandboxView, type SnapshotKind, type SnapshotView } from '@sandlot/protocol'
import type { ImageStore } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { Checkpoints } from '../node/checkpoints.ts'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { GatedDriver } from '../testing/gated-driver.ts'
import { openStores } from '../testing/stores.ts'
import { smallTar } from '../testing/tar.ts'
import type { SnapshotRecord } from './record.ts'
import { Snapshots } from './snapshots.ts'

const saved = (at: TestDaemon) => readdir(join(at.directories.dataDirectory, 'checkpoints'))

async function taken(at: TestDaemon, kind: SnapshotKind): Promise<SnapshotView> {
  const { id } = await at.sandbox({ checkpointable: kind === 'memory' })
  await at.ask('PUT', `/v1/sandboxes/${id}/files?path=/etc/new`, { body: id })
  const reply = await at.ask('POST', `/v1/sandboxes/${id}/snapshots`, { json: { kind } })
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  return reply.json as SnapshotView
}

test.each(['filesystem', 'memory'] as const)(
  'a snapshot (%s) stays while something starts from it; by force what starts comes up whole',
  async (kind) => {
    const driver = new GatedDriver({ capabilities: { memorySnapshot: true } })
    await using at = await startTestDaemon({ driver, daemon: { poolTarget: 0 } })
    const { id, image, sandbox: of } = await taken(at, kind)
    const open = driver.closeGate('create', 'restore')
    const start = () => at.ask('POST', '/v1/sandboxes', { json: { from: id } })
    const starting = [start(), start()]
    await expect.poll(() => driver.arrived).toBe(2)
    const path = `/v1/snapshots/${id}`
    expect(await at.ask('DELETE', path)).toMatchObject({ status: 409, code: 'snapshot_in_use' })
    expect((await at.ask('DELETE', `${path}?force=true`)).status).toBe(204)
    expect((await at.ask('GET', '/v1/snapshots')).json).toMatchObject({ items: [] })
    expect(await start()).toMatchObject({ status: 404, code: 'snapshot_unknown' })
    open()
    for (const reply of await Promise.all(starting)) {
      expect(reply.status).toBe(201)
      const { id: sandbox } = reply.json as SandboxView
      // Files of an image are none of this driver's.
      const file = await at.ask('GET', `/v1/sandboxes/${sandbox}/files?path=/etc/new`)
      expect(file.text).toContain(kind === 'memory' ? of : 'file_not_found')
      await at.ask('DELETE', `/v1/sandboxes/${sandbox}`)
    }
    // It goes after the last of them has come up, whom nobody has wait for that.
    await expect.poll(() => saved(at)).toEqual([])
    await taken(at, 'filesystem')
    expect((await at.ask('GET', `/v1/images/${image}`)).code).toBe('image_unknown')
  },
)

interface Parts extends AsyncDisposable {
  readonly engine: Engine
  readonly images: ImageStore
  readonly image: string
  readonly checkpoints: Checkpoints
  /** `seenBy`: the image store as the snapshots see it. */
  open(seenBy?: (images: ImageStore) => ImageStore): Promise<Snapshots>
}

/** What snapshots stand on, with an image. */
async function opened(): Promise<Parts> {
  await using stack = new AsyncDisposableStack()
  const stores = await openStores(stack)
  const { directory, engine, images } = stores
  const { id: image } = stores.image
  const checkpoints = new Checkpoints(`${directory}/checkpoints`)
  const open = (seenBy = (each: ImageStore) => each) =>
    Snapshots.open({
      ...{ engine, images: seenBy(images), checkpoints, now: Date.now },
      user: () => undefined,
      log: { warn: () => {}, error: () => {} },
    })
  const moved = stack.move()
  return {
    engine,
    images,
    image,
    checkpoints,
    open,
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

test('an image that is made while the same one is removed is there', async () => {
  await using at = await opened()
  const { images, image: parent } = at
  const make = () => images.extend({ parent, difference: oneOf(smallTar('new', 'content')) })
  const { id } = await make()
  const removing = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const snapshots = await at.open((store) =>
    Object.create(store, {
      listExtended: { value: () => store.listExtended() },
      remove: {
        value: async (each: string) => {
          removing.resolve()
          await go.promise
          return await store.remove(each)
        },
      },
    }),
  )
  const reaping = snapshots.reap()
  await removing.promise
  const made = snapshots.whileMaking(async () => {
    const image = await make()
    go.resolve()
    await reaping
    return await images.find(image.id)
  })
  // Where it were made at once, the removal would come after it.
  setTimeout(go.resolve, 500)
  expect(await made).toMatchObject({ id })
})

async function* oneOf(bytes: Uint8Array) {
  yield bytes
}

test('what somebody is about to start from goes when that is over', async () => {
  await using at = await opened()
  const { engine, images, image, checkpoints } = at
  const snapshots = await at.open()
  const [project, id] = ['default', newId('snapshot')]
  const limits = { request: 1, limit: 1 }
  const record: SnapshotRecord = {
    ...{ id, project, kind: 'memory', tags: {}, image, parent: image, sandbox: newId('sandbox') },
    ...{ sizeBytes: 1, createdAtMs: 1 },
    memory: {
      ...{ checkpoint: id, below: image, runtime: 'r', cpuFeatures: '', env: {}, workdir: '/' },
      ...{ user: '0', resources: { cpu: limits, memory: limits, disk: 1, pids: 1 } },
    },
  }
  await mkdir(checkpoints.path(id), { recursive: true })
  await snapshots.add(record)
  const used = await snapshots.use(project, id)
  await expect(snapshots.remove(project, id, false)).rejects.toMatchObject({
    code: 'snapshot_in_use',
  })
  await snapshots.remove(project, id, true)
  await expect(snapshots.use(project, id)).rejects.toMatchObject({ code: 'snapshot_unknown' })
  expect(await checkpoints.has(id)).toBe(true)
  await expect(images.remove(image)).rejects.toMatchObject({ code: 'image_in_use' })
  // The start itself holds the memory longer than the wish for it.
  const held = await checkpoints.hold(id)
  used[Symbol.dispose]()
  await expect
    .poll(() =>
      images.remove(image).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  expect(await checkpoints.has(id)).toBe(true)
  await expect(checkpoints.hold(id)).rejects.toMatchObject({ code: 'snapshot_unknown' })
  held[Symbol.dispose]()
  await expect.poll(() => checkpoints.has(id)).toBe(false)
  expect(await Array.fromAsync((await engine.kv.list('snapshot/')).entries)).toEqual([])
})
