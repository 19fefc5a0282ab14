/** Files and directories of this machine as streams. */
import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SandlotError } from '@sandlot/protocol'
import type { Pack } from 'tar-stream'
import { localBytes, localFailure } from './local-failure.ts'
import { localTar, namesIn, packEntry } from './local-tar.ts'

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
  return localTar(directory, async (pack) => await packDirectory(pack, directory, ''))
}

async function packDirectory(pack: Pack, root: string, below: string): Promise<void> {
  for (const name of await namesIn(join(root, below))) {
    const relative = below === '' ? name : `${below}/${name}`
    const kind = await packEntry(pack, { path: join(root, relative), name: relative })
    if (kind === 'directory') await packDirectory(pack, root, relative)
  }
}
