import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { BackupFile } from '@sandlot/engine'
import type { BackupParts } from './archive.ts'

type Parts = Pick<BackupParts, 'dataDirectory' | 'images' | 'checkpoints'>

/** Each layer once, then the records of the images that have them, then what leads to those: a part of it is never half an image. */
export async function* imageFiles({ dataDirectory, images }: Parts): AsyncGenerator<BackupFile> {
  await using kept = new AsyncDisposableStack()
  const ids = [...(await images.list()), ...(await images.listExtended())].map(({ id }) => id)
  const layers = new Map<string, string>()
  const records: string[] = []
  for (const id of ids) {
    const pinned = await images.pin(id).catch(() => undefined)
    // It has just been removed.
    if (!pinned) continue
    kept.use(pinned)
    records.push(`${id}.json`)
    for (const { digest, path } of pinned.image.layers) layers.set(digest, path)
  }
  for (const [digest, path] of layers) {
    const { size: sizeBytes } = await stat(path)
    const open = () => createReadStream(path)
    yield { path: `images/layers/${basename(path)}`, sizeBytes, digest, open }
  }
  yield* filesOf(dataDirectory, 'images/images', records)
  const keys = await readdir(join(dataDirectory, 'images/keys')).catch(() => [])
  yield* filesOf(dataDirectory, 'images/keys', keys)
}

/** Memory of snapshots and of paused sandboxes. */
export async function* memoryFiles({
  dataDirectory,
  checkpoints,
}: Parts): AsyncGenerator<BackupFile> {
  const names = await readdir(join(dataDirectory, 'checkpoints')).catch(() => [])
  for (const name of names.filter((each) => /^(sn|sb)_[^.]*$/.test(each))) {
    using held = await checkpoints.hold(name).catch(() => undefined)
    if (!held) continue
    const folder = `checkpoints/${name}`
    yield* filesOf(dataDirectory, folder, await readdir(join(dataDirectory, folder)))
  }
}

async function* filesOf(
  dataDirectory: string,
  folder: string,
  names: readonly string[],
): AsyncGenerator<BackupFile> {
  for (const name of names) {
    const path = join(dataDirectory, folder, name)
    const found = await stat(path).catch(() => undefined)
    if (!found?.isFile()) continue
    yield { path: `${folder}/${name}`, sizeBytes: found.size, open: () => createReadStream(path) }
  }
}
