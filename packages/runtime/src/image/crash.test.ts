import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { BuildStep } from '@sandlot/protocol'
import { tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { run } from '../process/run.ts'
import { ImageFiles } from './image-files.ts'
import { type ImageStore, openImageStore } from './store.ts'

const fixture = fileURLToPath(new URL('fixtures/build-steps.ts', import.meta.url))

interface Bench extends AsyncDisposable {
  readonly directory: string
  readonly blobs: string
  open(): Promise<ImageStore>
}

async function bench(): Promise<Bench> {
  const root = await temporaryDirectory()
  const blobs = join(root.path, 'blobs')
  const directory = join(root.path, 'images')
  await mkdir(blobs)
  for (const name of ['a', 'b', 'c', 'd']) {
    const tar = tarArchive([{ path: name, content: Buffer.alloc(300_000, name) }])
    await writeFile(join(blobs, createHash('sha256').update(tar).digest('hex')), tar)
  }
  const openBlob = async (digest: string) =>
    createReadStream(join(blobs, digest.replace('sha256:', '')))
  return {
    directory,
    blobs,
    open: () => openImageStore({ directory, openBlob }),
    [Symbol.asyncDispose]: () => root[Symbol.asyncDispose](),
  }
}

/** Lets a process build, and kills it when it said a line so often. */
async function killed({ directory, blobs }: Bench, phase: string, line: string, times: number) {
  const argv = ['--disable-warning=ExperimentalWarning', fixture, directory, blobs, phase]
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  let left = times
  for await (const said of createInterface(child.stdout)) {
    if (said === line) left -= 1
    if (left === 0) break
  }
  child.kill('SIGKILL')
  await gone
}

/** Everything that can be found is whole, and what the dead process had begun is gone. */
async function expectWhole(at: Bench): Promise<void> {
  await using store = await at.open()
  const files = await ImageFiles.open(at.directory)
  for (const { id } of await files.list()) expect(await store.verify(id)).toEqual([])
  expect(await readdir(join(at.directory, 'tmp'))).toEqual([])
  for (const name of await readdir(join(at.directory, 'keys'))) {
    const { image } = JSON.parse(await readFile(join(at.directory, 'keys', name), 'utf8'))
    expect(await files.find(image)).toBeDefined()
  }
  const [base = '', ...copies] = (await readdir(at.blobs)).map((hex) => `sha256:${hex}`).sort()
  const steps = copies.map((blob): BuildStep => ({ kind: 'copy', blob, to: '/0' }))
  const image = await store.build({ kind: 'built', base: { kind: 'tar', blob: base }, steps })
  expect(image.layers).toHaveLength(4)
  expect(await store.verify(image.id)).toEqual([])
  await store.collect(0)
  expect(await readdir(join(at.directory, 'layers'))).toEqual([])
}

test.each([
  ['while the base is written', 'blob 1'],
  ['while a step’s layer is written', 'blob 3'],
  ['when the base’s layer is in place, and the image is not', 'layers 1'],
  ['when a step’s layer is in place, and its image is not', 'layers 3'],
])('a process that is killed %s leaves nothing half made', async (_name, phase) => {
  await using at = await bench()
  await killed(at, phase, 'reached', 1)
  await expectWhole(at)
})

test('one that is killed between, at no moment in particular, neither', async () => {
  await using at = await bench()
  for (const times of [1, 2, 5, 3]) await killed(at, '', 'built', times)
  await expectWhole(at)
})

test('a full disk is told at each step, and nothing half made stays', async () => {
  await using at = await bench()
  await mkdir(at.directory)
  for (const sizeKiB of [200, 500, 800, 1_150]) {
    const options = ['-t', 'tmpfs', '-o', `size=${sizeKiB}k`, 'test', at.directory]
    const mounted = await run('mount', options, { timeoutMs: 10_000 })
    expect(mounted.problem).toBeUndefined()
    try {
      await using store = await at.open()
      const [base = '', ...copies] = (await readdir(at.blobs)).map((hex) => `sha256:${hex}`).sort()
      const steps = copies.map((blob): BuildStep => ({ kind: 'copy', blob, to: '/0' }))
      const build = store.build({ kind: 'built', base: { kind: 'tar', blob: base }, steps })
      await expect(build).rejects.toMatchObject({ code: 'disk_full' })
      const files = await ImageFiles.open(at.directory)
      for (const { id } of await files.list()) expect(await store.verify(id)).toEqual([])
      expect(await readdir(join(at.directory, 'tmp'))).toEqual([])
    } finally {
      await run('umount', [at.directory], { timeoutMs: 10_000 })
    }
  }
})
