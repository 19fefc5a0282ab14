import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { MemoryBlobs, tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { type ImageStore, openImageStore } from './store.ts'

const archive = tarArchive([{ path: 'bin/tool', content: 'tool' }])

interface Written extends AsyncDisposable {
  readonly directory: string
  readonly record: string
  readonly key: string
  open(): Promise<ImageStore>
  build(store: ImageStore): Promise<string>
}

/** A directory with one image, and nobody in it. */
async function written(): Promise<Written> {
  const root = await temporaryDirectory()
  const directory = root.path
  const blobs = new MemoryBlobs()
  const blob = blobs.put(archive)
  const open = () => openImageStore({ directory, openBlob: blobs.open })
  const build = async (store: ImageStore) => (await store.build({ kind: 'tar', blob })).id
  {
    await using store = await open()
    await build(store)
  }
  const only = async (folder: string) =>
    join(directory, folder, (await readdir(join(directory, folder)))[0] ?? '')
  const [record, key] = [await only('images'), await only('keys')]
  return {
    directory,
    record,
    key,
    open,
    build,
    [Symbol.asyncDispose]: () => root[Symbol.asyncDispose](),
  }
}

test.each([
  ['has what this version does not know', (text: string) => text.replace('"tar"', '"hologram"')],
  ['is cut off', (text: string) => text.slice(0, 40)],
])('a record that %s is named with what to do, and keeps its layers', async (_, change) => {
  await using at = await written()
  const before = await readFile(at.record, 'utf8')
  await writeFile(at.record, change(before))
  const refused = {
    code: 'image_source_invalid',
    message: expect.stringContaining(at.record),
    hint: expect.stringContaining('move this file away'),
  }
  {
    await using store = await at.open()
    expect(await store.list()).toEqual([])
    await expect(store.get(basename(at.record, '.json'))).rejects.toMatchObject(refused)
    await store.collectIntermediate()
  }
  expect(await readdir(join(at.directory, 'layers'))).toHaveLength(1)

  await rm(at.record)
  await using store = await at.open()
  expect(await store.list()).toEqual([])
  const id = await at.build(store)
  expect(await store.verify(id)).toEqual([])
})

test('a key that can’t be read leads nowhere: its image is built again', async () => {
  await using at = await written()
  await writeFile(at.key, '{"image"')
  await using store = await at.open()
  const id = await at.build(store)
  await store.remove(id)
  expect(await readdir(join(at.directory, 'keys'))).toEqual([])
})

test('one record that can’t be read hides no other image', async () => {
  await using at = await written()
  await writeFile(join(at.directory, 'images', `im_${'0'.repeat(20)}.json`), '')
  await using store = await at.open()
  expect(await store.list()).toHaveLength(1)
  expect(await store.verify(basename(at.record, '.json'))).toEqual([])
})
