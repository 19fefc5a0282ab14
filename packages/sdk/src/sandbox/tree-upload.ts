/** Files and directories of this machine as streams. */
import { createReadStream, type Stats } from 'node:fs'
import { lstat, readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { SandlotError } from '@sandlot/protocol'
import * as tar from 'tar-stream'
import { localBytes, localFailure } from './local-failure.ts'

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
  const pack = tar.pack()
  packDirectory(pack, directory, '').then(
    () => pack.finalize(),
    (error) => {
      const at = (error as NodeJS.ErrnoException).path ?? directory
      pack.destroy(localFailure(error, `cannot read ${at}`) as Error)
    },
  )
  // streamx streams iterate as Node's do; their types don't say of what.
  return pack as unknown as AsyncIterable<Uint8Array>
}

async function packDirectory(pack: tar.Pack, root: string, below: string): Promise<void> {
  for (const name of await namesIn(join(root, below))) {
    const relative = below === '' ? name : `${below}/${name}`
    const path = join(root, relative)
    const found = await lstat(path)
    const header = { name: relative, mode: found.mode & 0o7777, mtime: found.mtime, uid: 0, gid: 0 }
    if (found.isDirectory()) {
      await entry(pack, { ...header, type: 'directory' })
      await packDirectory(pack, root, relative)
    } else if (found.isSymbolicLink()) {
      await entry(pack, { ...header, type: 'symlink', linkname: await readlink(path) })
    } else if (found.isFile()) {
      const sink = pack.entry({ ...header, type: 'file', size: found.size })
      // A file that grows meanwhile is cut at the size its header promised.
      if (found.size === 0) sink.end(undefined)
      else await pipeline(createReadStream(path, { end: found.size - 1 }), sink)
    }
  }
}

/** Sorted, so that the same content is the same tar. A tar's names are UTF-8. */
async function namesIn(directory: string): Promise<string[]> {
  const names = await readdir(directory, { encoding: 'buffer' })
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const decoded = names.map((name) => {
    try {
      return decoder.decode(name)
    } catch (cause) {
      const shown = JSON.stringify(`${directory}/${name.toString()}`)
      throw new SandlotError('invalid_request', `the name of ${shown} is not UTF-8`, {
        hint: 'Rename it, or leave it out of what is uploaded.',
        cause,
      })
    }
  })
  return decoded.sort()
}

function entry(pack: tar.Pack, header: Parameters<tar.Pack['entry']>[0]): Promise<void> {
  return new Promise((done, fail) => pack.entry(header, (error) => (error ? fail(error) : done())))
}
