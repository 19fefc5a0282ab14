import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  listErofs,
  listErofsContents,
  MemoryBlobs,
  ociLayout,
  type TarMember,
  tarArchive,
  temporaryDirectory,
} from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { type ImageStore, openImageStore } from './store.ts'

async function setup() {
  const stack = new AsyncDisposableStack()
  const directory = stack.use(await temporaryDirectory()).path
  const blobs = new MemoryBlobs()
  const open = () => openImageStore({ directory, openBlob: blobs.open, now: () => 1000 })
  const store = stack.use(await open())
  const blob = blobs.put(tarArchive([{ path: 'etc/name', content: 'x' }]))
  const parent = await store.build({ kind: 'tar', blob })
  const left = async (folder: string) => (await readdir(join(directory, folder))).length
  return {
    store,
    directory,
    blobs,
    open,
    parent,
    left,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

async function* difference(...members: TarMember[]): AsyncGenerator<Uint8Array> {
  yield tarArchive(members)
}

const CHANGES: readonly TarMember[] = [
  { path: 'etc/', mode: 0o711, pax: { mtime: '5.000000007' } },
  { path: 'etc/name', type: '3', mode: 0 },
  { path: 'etc/.wh.other', content: 'a name like any other' },
]

test('the difference is one layer more, with the parent’s configuration', async () => {
  await using at = await setup()
  const image = await at.store.extend({ parent: at.parent.id, difference: difference(...CHANGES) })
  expect(image).toMatchObject({
    source: { kind: 'id', id: at.parent.id },
    config: at.parent.config,
    createdAtMs: 1000,
  })
  expect(image.layers[0]).toEqual(at.parent.layers[0])
  expect(image.layers).toHaveLength(2)
  expect(image.sizeBytes).toBe(at.parent.sizeBytes + (image.layers[1]?.sizeBytes ?? 0))
  expect(await listErofs(image.layers[1]?.path ?? '')).toEqual([
    'etc directory 711 0:0 5',
    'etc/.wh.other file 644 0:0 1700000000 a name like any other',
    'etc/name whiteout 0 0:0 0 0',
  ])
  expect(await at.store.verify(image.id)).toEqual([])
  expect(await at.left('tmp')).toBe(0)
})

test('the same difference is the same image, whoever makes it', async () => {
  await using at = await setup()
  await using other = await at.open()
  const extend = (store: ImageStore) =>
    store.extend({ parent: at.parent.id, difference: difference(...CHANGES) })
  const [first, ...others] = await Promise.all([at.store, other, at.store].map(extend))
  for (const each of others) expect(each).toEqual(first)
  expect(await at.left('images')).toBe(2)
})

test('without a change it is the parent', async () => {
  await using at = await setup()
  const again = await at.store.extend({ parent: at.parent.id, difference: difference() })
  expect(again).toEqual(at.parent)
  expect([await at.left('images'), await at.left('layers')]).toEqual([1, 1])
})

test('the parent can’t go meanwhile, and may go afterwards', async () => {
  await using at = await setup()
  const gate = Promise.withResolvers<void>()
  async function* slow() {
    await gate.promise
    yield* difference(...CHANGES)
  }
  const extended = at.store.extend({ parent: at.parent.id, difference: slow() })
  await expect(at.store.remove(at.parent.id)).rejects.toMatchObject({ code: 'image_in_use' })
  gate.resolve()
  const image = await extended
  await at.store.remove(at.parent.id)
  expect(await at.store.verify(image.id)).toEqual([])
  expect(await listErofsContents(image.layers[0]?.path ?? '')).toContain('etc/name file x')
})

test('a stream that fails, breaks off or is refused leaves nothing', async () => {
  await using at = await setup()
  async function* failing() {
    yield tarArchive([{ path: 'a', content: 'x'.repeat(9000) }]).subarray(0, 2000)
    throw new Error('the sandbox is gone')
  }
  async function* cut() {
    yield tarArchive([{ path: 'a', content: 'x'.repeat(9000) }]).subarray(0, 2000)
  }
  const extend = (stream: AsyncIterable<Uint8Array>, signal?: AbortSignal) =>
    at.store.extend({ parent: at.parent.id, difference: stream }, { signal })
  await expect(extend(failing())).rejects.toThrow('the sandbox is gone')
  for (const stream of [
    cut(),
    difference({ path: '../up' }),
    difference({ path: 'x', type: '4' }),
  ]) {
    await expect(extend(stream)).rejects.toMatchObject({ code: 'image_source_invalid' })
  }
  const reason = new Error('enough')
  await expect(extend(difference(...CHANGES), AbortSignal.abort(reason))).rejects.toBe(reason)
  await expect(
    at.store.extend({ parent: 'im_aaaaaaaaaaaaaaaaaaaa', difference: difference() }),
  ).rejects.toMatchObject({ code: 'image_unknown' })
  expect([await at.left('images'), await at.left('layers'), await at.left('tmp')]).toEqual([
    1, 1, 0,
  ])
})

test('what a killed process left half-made is removed by the next', async () => {
  await using at = await setup()
  const never = new AbortController()
  async function* hanging() {
    yield tarArchive([{ path: 'a' }]).subarray(0, 100)
    await new Promise((_resolve, reject) =>
      never.signal.addEventListener('abort', () => reject(never.signal.reason)),
    )
  }
  const extended = at.store.extend({ parent: at.parent.id, difference: hanging() })
  extended.catch(() => {})
  await expect.poll(() => at.left('tmp')).toBe(1)
  // Another process leaves it alone: its lock is held.
  await using _other = await at.open()
  expect(await at.left('tmp')).toBe(1)
  never.abort(new Error('killed'))
  await expect(extended).rejects.toThrow('killed')
  expect(await at.left('tmp')).toBe(0)
})

test('built as well, it is an image like any other', async () => {
  await using at = await setup()
  const added: TarMember[] = [
    { path: 'etc/', mode: 0o755 },
    { path: 'etc/new', content: 'y' },
  ]
  const extended = await at.store.extend({ parent: at.parent.id, difference: difference(...added) })
  const layers = [tarArchive([{ path: 'etc/name', content: 'x' }]), tarArchive(added)]
  const source = { kind: 'oci', blob: at.blobs.put(ociLayout({ layers })) } as const
  const built = await at.store.build(source)
  expect(built.id).toBe(extended.id)
  expect(await at.store.get(extended.id)).toMatchObject({ source })
  await at.store.extend({ parent: at.parent.id, difference: difference(...added) })
  expect(await at.store.get(extended.id)).toMatchObject({ source })
})
