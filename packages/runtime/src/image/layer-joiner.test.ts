import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, open, readdir, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BuildStep } from '@sandlot/protocol'
import { type BuildBench, buildBench, ociLayout, tarArchive } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { readErofsTree } from './erofs/read-tree.ts'
import type { Image, ImageLayer } from './image.ts'
import { ImageFiles } from './image-files.ts'
import { LayerJoiner } from './layer-joiner.ts'
import { imageLimits } from './limits.ts'
import { openImageStore } from './store.ts'
import { mergedOver } from './whiteouts.ts'

const DEEP = imageLimits.layersKept + 5
const fixture = fileURLToPath(new URL('fixtures/join-layers.ts', import.meta.url))

async function deep(at: BuildBench, count = DEEP): Promise<Image> {
  const base = { kind: 'tar', blob: at.tar([{ path: 'etc/a', content: 'a' }]) } as const
  const steps = Array.from({ length: count - 1 }, (_, n): BuildStep => {
    const content = Buffer.alloc(10, n)
    return { kind: 'copy', blob: at.tar([{ path: `f${n}`, content }]), to: '/' }
  })
  return await at.build(base, steps)
}

/** With the form that it has now; nothing is kept of it. */
async function startedWith(at: Pick<BuildBench, 'store'>, { id }: Image): Promise<Image> {
  using pinned = await at.store.pinForStart(id)
  return pinned.image
}

const joined = async (at: Pick<BuildBench, 'store'>, image: Image) =>
  await expect
    .poll(async () => (await startedWith(at, image)).layers.length)
    .toBe(imageLimits.layersKept)

async function namesIn(layers: readonly ImageLayer[]): Promise<string[]> {
  let tree: Awaited<ReturnType<typeof readErofsTree>> | undefined
  for (const { path } of layers) tree = mergedOver(await readErofsTree(path), tree)
  return [...(tree?.children.keys() ?? [])].sort()
}

const layerFiles = async (at: BuildBench) => await readdir(join(at.directory, 'layers'))

test('an image of many layers is there at once, and is started with few when they are joined', async () => {
  await using at = await buildBench()
  const image = await deep(at)
  expect(image.layers).toHaveLength(DEEP)
  await joined(at, image)
  const form = await startedWith(at, image)
  expect(form.id).not.toBe(image.id)
  expect(form.config).toEqual(image.config)
  expect(form.layers.slice(0, -1)).toEqual(image.layers.slice(0, imageLimits.layersKept - 1))
  expect(await namesIn(form.layers)).toEqual(await namesIn(image.layers))
  // It is itself what it was.
  expect(await at.store.get(image.id)).toEqual(image)
  expect((await at.store.list()).map(({ id }) => id)).not.toContain(form.id)
  expect(await at.store.listExtended()).toEqual([])
  expect(await startedWith(at, form)).toEqual(form)
  // Another process finds it.
  await using other = await openImageStore({ directory: at.directory, openBlob: at.blobs.open })
  expect((await startedWith({ store: other }, image)).id).toBe(form.id)
})

test('what is deep already is joined once it is asked for', async () => {
  await using at = await buildBench()
  const layers = Array.from({ length: 30 }, (_, n) =>
    tarArchive([{ path: `f${n}`, content: `${n}` }]),
  )
  const image = await at.store.build({ kind: 'oci', blob: at.blobs.put(ociLayout({ layers })) })
  expect(image.layers).toHaveLength(30)
  await joined(at, image)
})

test('what sandboxes left is joined beyond the second bound alone', async () => {
  await using at = await buildBench()
  let image = await at.build({ kind: 'tar', blob: at.tar([{ path: 'a' }]) }, [])
  const extend = async (n: number) => {
    const difference = (async function* () {
      yield tarArchive([{ path: `n${n}`, content: `${n}` }])
    })()
    image = await at.store.extend({ parent: image.id, difference })
  }
  for (let n = 1; n < imageLimits.layersSaved; n++) await extend(n)
  expect(image.layers).toHaveLength(imageLimits.layersSaved)
  expect(await startedWith(at, image)).toEqual(image)
  const before = await layerFiles(at)
  await extend(imageLimits.layersSaved)
  await joined(at, image)
  expect(await layerFiles(at)).toHaveLength(before.length + 2)
  expect((await at.store.listExtended()).some(({ joinedOf }) => joinedOf)).toBe(false)
})

test('it is done once, one at a time, and what fails leaves the image as it was', async () => {
  await using at = await buildBench()
  const files = await ImageFiles.open(at.directory)
  const [one, two] = [await deep(at), await deep(at, DEEP + 1)]
  let [begun, under, most] = [0, 0, 0]
  const joiner = new LayerJoiner({
    ...{ files, now: Date.now },
    join: async ({ layers, path }) => {
      begun += 1
      under += 1
      most = Math.max(most, under)
      await new Promise((resolve) => setImmediate(resolve))
      under -= 1
      if (layers.length === DEEP + 1) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      await writeFile(path, '')
      return layers.slice(0, 3)
    },
  })
  // The store's own may have been faster.
  const free = { ...one, id: 'im_aaaaaaaaaaaaaaaaaaaa' }
  for (const image of [free, two, free, { ...two, id: 'im_bbbbbbbbbbbbbbbbbbbb' }])
    joiner.joinSoon(image)
  await joiner.idle()
  joiner.joinSoon(free)
  await joiner.idle()
  expect(most).toBe(1)
  expect(begun).toBeGreaterThan(1)
  expect((await joiner.find(free.id))?.layers).toHaveLength(3)
  expect(await joiner.find('im_bbbbbbbbbbbbbbbbbbbb')).toBeUndefined()
  const before = begun
  joiner.joinSoon({ ...two, id: 'im_bbbbbbbbbbbbbbbbbbbb' })
  await joiner.idle()
  expect(begun).toBe(before)
  await joiner.close()
  // That of the store may still be at it.
  const left = () => readdir(join(at.directory, 'tmp'))
  await expect.poll(left).toEqual([])
})

test('it goes with its image, stays while a sandbox has it, and is verified with it', async () => {
  await using at = await buildBench()
  const image = await deep(at)
  await joined(at, image)
  const top = (await startedWith(at, image)).layers.at(-1)
  const damage = async (write: (path: string) => Promise<void>) => {
    const path = top?.path ?? ''
    await chmod(path, 0o600)
    await write(path)
  }
  {
    using _ = await at.store.pinForStart(image.id)
    await expect(at.store.remove(image.id)).rejects.toMatchObject({ code: 'image_in_use' })
  }
  await damage(async (path) => {
    await using file = await open(path, 'r+')
    await file.write('damage', 4_000)
  })
  expect(await at.store.verify(image.id)).toEqual([{ digest: top?.digest, problem: 'damaged' }])
  // One that was cut is no form to start from, and is made again.
  await damage((path) => truncate(path, 5_000))
  expect((await startedWith(at, image)).id).toBe(image.id)
  await joined(at, image)
  expect(await at.store.verify(image.id)).toEqual([])
  await at.store.collectIntermediate()
  const { images } = await at.store.remove(image.id)
  expect(images.map(({ id }) => id)).toContain(image.id)
  // The base is an image of its own.
  expect(await layerFiles(at)).toHaveLength(1)
})

test('a form that somebody has outlives its image, and is told among what nobody names then', async () => {
  await using at = await buildBench()
  const image = await deep(at)
  await joined(at, image)
  const { id } = await startedWith(at, image)
  {
    using _ = await at.store.pin(id)
    await at.store.remove(image.id)
    expect((await at.store.listExtended()).map((each) => each.id)).toEqual([id])
  }
  await at.store.remove(id)
  expect(await at.store.listExtended()).toEqual([])
})

test('a process that is killed while it joins leaves nothing, and the next one does it', async () => {
  await using at = await buildBench()
  const built = await deep(at)
  await joined(at, built)
  const form = await startedWith(at, built)
  await at.store.remove(form.id)
  const left = () => readdir(join(at.directory, 'tmp'))
  await expect.poll(left).toEqual([])
  const argv = ['--disable-warning=ExperimentalWarning', fixture, at.directory, built.id]
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await gone
  expect(await left()).not.toEqual([])
  await using next = await openImageStore({ directory: at.directory, openBlob: at.blobs.open })
  expect(await left()).toEqual([])
  expect((await startedWith({ store: next }, built)).id).toBe(built.id)
  await joined({ store: next }, built)
  expect(await next.verify(built.id)).toEqual([])
})
