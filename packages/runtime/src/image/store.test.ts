import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { listErofsContents, MemoryBlobs, tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { run } from '../process/run.ts'
import { type ImageStore, openImageStore } from './store.ts'

const archive = tarArchive([
  { path: 'bin/tool', content: 'tool', mode: 0o755, uid: 1000 },
  { path: 'etc/name', content: 'x'.repeat(50_000) },
])

interface Setup extends AsyncDisposable {
  readonly store: ImageStore
  readonly blobs: MemoryBlobs
  readonly directory: string
}

async function setup(): Promise<Setup> {
  const stack = new AsyncDisposableStack()
  const directory = stack.use(await temporaryDirectory()).path
  const blobs = new MemoryBlobs()
  const store = stack.use(
    await openImageStore({ directory, openBlob: blobs.open, now: () => 1000 }),
  )
  return { store, blobs, directory, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** Files of the store, without locks. */
async function files(directory: string): Promise<string[]> {
  const all = await readdir(directory, { recursive: true, withFileTypes: true })
  return all
    .filter((entry) => entry.isFile() && !entry.parentPath.endsWith('locks'))
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort()
}

test('a tar becomes an image that is found again', async () => {
  await using at = await setup()
  const blob = at.blobs.put(archive)
  const image = await at.store.build({ kind: 'tar', blob })
  expect(image).toMatchObject({
    id: expect.stringMatching(/^im_[a-z0-9]{20}$/),
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    source: { kind: 'tar', blob },
    createdAtMs: 1000,
    sizeBytes: image.layers[0]?.sizeBytes,
  })
  const [layer] = image.layers
  expect(await listErofsContents(layer?.path ?? '')).toContain('bin/tool file tool')
  expect(await at.store.get(image.id)).toEqual(image)
  expect(await at.store.list()).toEqual([image])
  expect(await at.store.verify(image.id)).toEqual([])
  expect(await at.store.build({ kind: 'tar', blob })).toEqual(image)
  expect(at.blobs.opened).toBe(1)
  expect(await readdir(join(at.directory, 'tmp'))).toEqual([])
})

test('locks of what is built are gone with the builds, and those that a killed process left at the next start', async () => {
  await using at = await setup()
  await at.store.build({ kind: 'tar', blob: at.blobs.put(archive) })
  expect(await readdir(join(at.directory, 'locks'))).toEqual(['store'])
  await writeFile(join(at.directory, 'locks', 'a'.repeat(64)), '')
  await using _other = await openImageStore({ directory: at.directory, openBlob: at.blobs.open })
  expect(await readdir(join(at.directory, 'locks'))).toEqual(['store'])
})

test('the same content by another way is the same image', async () => {
  await using at = await setup()
  const plain = await at.store.build({ kind: 'tar', blob: at.blobs.put(archive) })
  for (const packed of [gzipSync(archive), zstdCompressSync(archive)]) {
    expect(await at.store.build({ kind: 'tar', blob: at.blobs.put(packed) })).toEqual(plain)
  }
  const owned = await at.store.build({ kind: 'directory', blob: at.blobs.put(archive) })
  expect(owned.id).not.toBe(plain.id)
  expect(await at.store.list()).toHaveLength(2)
})

test('many callers share one build, over two stores of one directory as well', async () => {
  await using at = await setup()
  await using other = await openImageStore({ directory: at.directory, openBlob: at.blobs.open })
  const source = { kind: 'tar', blob: at.blobs.put(archive) } as const
  const images = await Promise.all([
    ...Array.from({ length: 5 }, () => at.store.build(source)),
    ...Array.from({ length: 5 }, () => other.build(source)),
  ])
  expect(new Set(images.map((image) => image.id)).size).toBe(1)
  expect(at.blobs.opened).toBe(1)
})

/** A blob that stands still until it is let go. */
function stuckBlob(): {
  open: () => Promise<AsyncIterable<Uint8Array>>
  reached: Promise<void>
  go: () => void
} {
  const reached = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  async function* content(): AsyncGenerator<Uint8Array> {
    yield archive.subarray(0, 512)
    reached.resolve()
    await gate.promise
    yield archive.subarray(512)
  }
  return { open: async () => content(), reached: reached.promise, go: gate.resolve }
}

test('one caller may leave while another waits on', async () => {
  await using directory = await temporaryDirectory()
  const stuck = stuckBlob()
  await using store = await openImageStore({ directory: directory.path, openBlob: stuck.open })
  const blob = new MemoryBlobs().put(archive)
  const leaver = new AbortController()
  const left = store.build({ kind: 'tar', blob }, { signal: leaver.signal })
  const stays = store.build({ kind: 'tar', blob })
  await stuck.reached
  leaver.abort(new Error('had enough'))
  await expect(left).rejects.toThrow('had enough')
  stuck.go()
  expect((await stays).id).toMatch(/^im_/)
})

test('the build ends with its last caller and leaves nothing', async () => {
  await using directory = await temporaryDirectory()
  const stuck = stuckBlob()
  await using store = await openImageStore({ directory: directory.path, openBlob: stuck.open })
  const blob = new MemoryBlobs().put(archive)
  const leaver = new AbortController()
  const left = store.build({ kind: 'tar', blob }, { signal: leaver.signal })
  await stuck.reached
  leaver.abort(new Error('had enough'))
  await expect(left).rejects.toThrow('had enough')
  expect(await files(directory.path)).toEqual([])
  const again = store.build({ kind: 'tar', blob })
  stuck.go()
  expect((await again).id).toMatch(/^im_/)
})

test('closing the store gives up what is being built', async () => {
  await using directory = await temporaryDirectory()
  const stuck = stuckBlob()
  const store = await openImageStore({ directory: directory.path, openBlob: stuck.open })
  const build = store.build({ kind: 'tar', blob: new MemoryBlobs().put(archive) })
  const refused = expect(build).rejects.toThrow('closing')
  await stuck.reached
  await store[Symbol.asyncDispose]()
  await refused
  expect(await files(directory.path)).toEqual([])
})

test('content that is not what its digest says is refused', async () => {
  await using at = await setup()
  const blob = at.blobs.put(archive)
  at.blobs.forge(blob, tarArchive([{ path: 'other' }]))
  await expect(at.store.build({ kind: 'tar', blob })).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringMatching(/damaged/),
  })
  expect(await files(at.directory)).toEqual([])
})

test('a failure of the blob store passes through as it is', async () => {
  await using at = await setup()
  const blob = `sha256:${'0'.repeat(64)}`
  await expect(at.store.build({ kind: 'tar', blob })).rejects.toThrow(`no blob ${blob}`)
})

test.each([
  ['a digest of another kind', { kind: 'tar', blob: 'md5:abc' }],
  ['a path for a digest', { kind: 'tar', blob: '../../etc/passwd' }],
  ['a suite that is an option', { kind: 'debian', suite: '--help', packages: [] }],
  ['a suite that is a path', { kind: 'debian', suite: '../x', packages: [] }],
  ['a package that is an option', { kind: 'debian', suite: 'bookworm', packages: ['--yes'] }],
  ['a package that is two', { kind: 'debian', suite: 'bookworm', packages: ['a,b'] }],
  ['a package with a shell in it', { kind: 'debian', suite: 'bookworm', packages: ['a$(id)'] }],
  ['a package of one letter', { kind: 'debian', suite: 'bookworm', packages: ['a'] }],
  ['an unknown kind', { kind: 'magic' }],
])('%s is refused', async (_name, source) => {
  await using at = await setup()
  await expect(at.store.build(source as never)).rejects.toMatchObject({
    code: 'image_source_invalid',
    hint: expect.stringMatching(/./),
  })
})

test('an id that is none finds nothing', async () => {
  await using at = await setup()
  for (const id of ['', 'im_', '../keys/x', `im_${'a'.repeat(20)}`]) {
    expect(await at.store.find(id)).toBeUndefined()
    await expect(at.store.get(id)).rejects.toMatchObject({ code: 'image_unknown' })
    await expect(at.store.remove(id)).rejects.toMatchObject({ code: 'image_unknown' })
    await expect(at.store.pin(id)).rejects.toMatchObject({ code: 'image_unknown' })
    await expect(at.store.verify(id)).rejects.toMatchObject({ code: 'image_unknown' })
  }
})

test('a pinned image stays, an unpinned one goes with all that is its alone', async () => {
  await using at = await setup()
  const blob = at.blobs.put(archive)
  const image = await at.store.build({ kind: 'tar', blob })
  {
    using first = await at.store.pin(image.id)
    using _second = await at.store.pin(image.id)
    expect(first.image).toEqual(image)
    await expect(at.store.remove(image.id)).rejects.toMatchObject({ code: 'image_in_use' })
    first[Symbol.dispose]()
    await expect(at.store.remove(image.id)).rejects.toMatchObject({ code: 'image_in_use' })
  }
  await at.store.remove(image.id)
  expect(await files(at.directory)).toEqual([])
  expect((await at.store.build({ kind: 'tar', blob })).id).toBe(image.id)
  expect(at.blobs.opened).toBe(2)
})

test('while an image is pinned, pinning it again reads no file', async () => {
  await using at = await setup()
  const image = await at.store.build({ kind: 'tar', blob: at.blobs.put(archive) })
  const path = join(at.directory, 'images', `${image.id}.json`)
  {
    using first = await at.store.pin(image.id)
    await rm(path)
    using second = await at.store.pin(image.id)
    expect(second.image).toBe(first.image)
  }
  await expect(at.store.pin(image.id)).rejects.toMatchObject({ code: 'image_unknown' })
})

test('damage is found, and mended by removing and building again', async () => {
  await using at = await setup()
  const source = { kind: 'tar', blob: at.blobs.put(archive) } as const
  const image = await at.store.build(source)
  const path = image.layers[0]?.path ?? ''
  await chmod(path, 0o600)
  await writeFile(path, 'x', { flag: 'r+' })
  expect(await at.store.verify(image.id)).toEqual([
    { digest: image.layers[0]?.digest, problem: 'damaged' },
  ])
  await at.store.remove(image.id)
  await at.store.build(source)
  expect(await at.store.verify(image.id)).toEqual([])
})

test('a layer that went missing is built again', async () => {
  await using at = await setup()
  const source = { kind: 'tar', blob: at.blobs.put(archive) } as const
  const image = await at.store.build(source)
  await run('rm', [image.layers[0]?.path ?? ''], { timeoutMs: 10_000 })
  expect((await at.store.verify(image.id))[0]?.problem).toBe('missing')
  await at.store.build(source)
  expect(await at.store.verify(image.id)).toEqual([])
})

test('what a crash left is removed at the next start', async () => {
  await using at = await setup()
  const left = join(at.directory, 'tmp', 'f'.repeat(64))
  await mkdir(left)
  await writeFile(join(left, '0.erofs'), 'half')
  await using _next = await openImageStore({ directory: at.directory, openBlob: at.blobs.open })
  expect(await files(at.directory)).toEqual([])
})

test('a full disk is told, and nothing half made stays', async () => {
  await using directory = await temporaryDirectory()
  const mounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'test', directory.path], {
    timeoutMs: 10_000,
  })
  expect(mounted.problem).toBeUndefined()
  try {
    const blobs = new MemoryBlobs()
    await using store = await openImageStore({ directory: directory.path, openBlob: blobs.open })
    const large = tarArchive([{ path: 'large', content: Buffer.alloc(4 * 1024 * 1024, 1) }])
    await expect(store.build({ kind: 'tar', blob: blobs.put(large) })).rejects.toMatchObject({
      code: 'disk_full',
      hint: expect.stringMatching(/free space/),
    })
    expect(await files(directory.path)).toEqual([])
    const small = await store.build({ kind: 'tar', blob: blobs.put(archive) })
    expect(await store.verify(small.id)).toEqual([])
  } finally {
    await run('umount', [directory.path], { timeoutMs: 10_000 })
  }
})
