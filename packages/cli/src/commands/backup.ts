/** `sandlot backup`, `sandlot restore-backup`. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { formatSize } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import { Mistake } from '../failure.ts'
import { note, printLine } from '../output/terminal.ts'
import { interruption } from './interruption.ts'
import { saveBytes } from './save-bytes.ts'

/** It has the key of the daemon's machine in it. */
const OWNER_ALONE = 0o600

export async function backupCommand(
  path: string,
  { images = false }: { readonly images?: boolean },
): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  await saveBytes(client.backup({ images, signal }), path, { signal, mode: OWNER_ALONE })
  if (path === '-') return
  const { size } = await stat(path)
  note(
    `${formatSize(size)}: sandlot restore-backup ${path} --data-directory DIR makes a data directory of it`,
  )
}

export interface RestoreBackupOptions {
  readonly dataDirectory: string
}

export async function restoreBackupCommand(
  path: string,
  { dataDirectory: directory }: RestoreBackupOptions,
): Promise<void> {
  const found = await stat(path).catch((cause: Error) => {
    throw new Mistake(`${path} can't be read: ${cause.message}`, 'check the path', { cause })
  })
  if (!found.isFile()) throw new Mistake(`${path} is no file`, 'name what `sandlot backup` wrote')
  using interrupted = interruption()
  const { daemonOptions, restoreBackup } = await import('@sandlot/server')
  const { dataDirectory } = daemonOptions({ dataDirectory: directory })
  const { signal } = interrupted
  const restored = await restoreBackup({ archive: createReadStream(path), dataDirectory, signal })
  const { files, sizeBytes, createdAtMs, images } = restored
  printLine(dataDirectory)
  note(`${files} files, ${formatSize(sizeBytes)}, as of ${new Date(createdAtMs).toISOString()}`)
  if (!images) note('without images: they are built again when they are asked for')
  note(`sandlot serve --data-directory ${dataDirectory} goes on with it`)
}
