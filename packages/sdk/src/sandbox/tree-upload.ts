/** Files and directories of this machine as streams. */
import { createReadStream, type Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SandlotError } from '@sandlot/protocol'
import type { Pack } from 'tar-stream'
import { bytesAsText, nameOf, onDisk } from './byte-names.ts'
import { localBytes, localFailure } from './local-failure.ts'
import { localTar, packEntry } from './local-tar.ts'

export interface LocalContent {
  readonly kind: 'file' | 'directory'
  readonly mode: number
  /** A file's bytes, or a tar of a directory's content; from the beginning each time. */
  readonly open: () => AsyncIterable<Uint8Array>
}

/**
 * What stands at a path of this machine.
 * @throws SandlotError `not_found`, `local_file_failed`, or `file_not_regular` for a device, socket or FIFO
 */
export async function localContent(local: string): Promise<LocalContent> {
  const found = await localStat(local)
  const mode = found.mode & 0o7777
  if (found.isDirectory()) return { kind: 'directory', mode, open: () => tarOf(local) }
  if (found.isFile())
    return { kind: 'file', mode, open: () => localBytes(() => createReadStream(local), local) }
  throw new SandlotError('file_not_regular', `${local} is neither a file nor a directory`)
}

/** @throws SandlotError `not_found` or `local_file_failed` */
export async function localStat(local: string): Promise<Stats> {
  try {
    return await stat(local)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw localFailure(cause, `cannot read ${local}`)
    }
    throw new SandlotError('not_found', `there is no ${local} on this machine`, {
      hint: 'Check the path.',
      cause,
    })
  }
}

/** A tar of a directory's content, in constant memory. Sockets, devices and FIFOs are left out. */
export function tarOf(directory: string): AsyncIterable<Uint8Array> {
  const root = bytesAsText(directory)
  return localTar(directory, async (pack) => await packDirectory(pack, root, ''))
}

async function packDirectory(pack: Pack, root: string, below: string): Promise<void> {
  const names = await readdir(onDisk(join(root, below)), { encoding: 'buffer' })
  // Sorted, so that the same content is the same tar.
  for (const name of names.map((bytes) => bytes.toString('latin1')).sort()) {
    const relative = below === '' ? name : `${below}/${name}`
    const path = onDisk(join(root, relative))
    const packed = await packEntry(pack, { path, name: nameOf(relative) })
    if (packed?.kind === 'directory') await packDirectory(pack, root, relative)
  }
}
