/** Tars of this machine's files, made as they are read. */
import { createReadStream, lstatSync, readFileSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { SandlotError } from '@sandlot/protocol'
import * as tar from 'tar-stream'
import { nameOf } from './byte-names.ts'
import { localFailure } from './local-failure.ts'
import { longName } from './long-name.ts'

/** A file of no more is read in one piece, and by this thread: to ask another one costs ten times what it takes. */
const WHOLE_BYTES_MAX = 256 * 2 ** 10
const NOTHING = new Uint8Array(0)

/** One thing to be packed: where it is here, and its name in the tar. */
export interface LocalEntry {
  readonly path: string
  readonly name: string
  /** Default: the file's own. */
  readonly mtime?: Date
}

/** A tar that `fill` writes, in constant memory. `root` is named where a failure names no path. */
export function localTar(
  root: string,
  fill: (pack: tar.Pack) => Promise<void>,
): AsyncIterable<Uint8Array> {
  const pack = tar.pack()
  fill(pack).then(
    () => pack.finalize(),
    (error) => {
      const at = (error as NodeJS.ErrnoException).path ?? root
      pack.destroy(localFailure(error, `cannot read ${at}`) as Error)
    },
  )
  // streamx streams iterate as Node's do; their types don't say of what.
  return pack as unknown as AsyncIterable<Uint8Array>
}

/** As `LocalEntry`, also with names that are not UTF-8. */
interface AnyEntry extends Pick<LocalEntry, 'mtime'> {
  readonly path: string | Buffer
  readonly name: string | Buffer
}

/** Packs a file, a link, or a directory without its content; owned by root. Says what it was; `other` is not packed. */
export async function packEntry(
  pack: tar.Pack,
  { path, name, mtime }: AnyEntry,
): Promise<'directory' | 'link' | 'file' | 'other'> {
  const found = lstatSync(path)
  if (!found.isDirectory() && !found.isSymbolicLink() && !found.isFile()) return 'other'
  const mode = found.mode & 0o7777
  const header = {
    name: headerName(pack, name, 'L'),
    mode,
    mtime: mtime ?? found.mtime,
    uid: 0,
    gid: 0,
  }
  if (found.isDirectory()) {
    await entry(pack, { ...header, type: 'directory' })
    return 'directory'
  }
  if (found.isSymbolicLink()) {
    const target = nameOf((await readlink(path, { encoding: 'buffer' })).toString('latin1'))
    await entry(pack, { ...header, type: 'symlink', linkname: headerName(pack, target, 'K') })
    return 'link'
  }
  if (found.size <= WHOLE_BYTES_MAX) {
    // One of no size may be a device in disguise, as those of /proc are.
    await entry(pack, { ...header, type: 'file' }, found.size > 0 ? readFileSync(path) : NOTHING)
    return 'file'
  }
  const sink = pack.entry({ ...header, type: 'file', size: found.size })
  // A file that grows meanwhile is cut at the size its header promised.
  await pipeline(createReadStream(path, { end: found.size - 1 }), sink)
  return 'file'
}

/** Sorted, so that the same content is the same tar. A tar's names are UTF-8. */
export async function namesIn(directory: string): Promise<string[]> {
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

/** What stands in the header; a name that is no text goes ahead of it. */
function headerName(pack: tar.Pack, name: string | Buffer, type: 'L' | 'K'): string {
  if (typeof name === 'string') return name
  pack.push(longName(name, type))
  return 'bytes'
}

function entry(
  pack: tar.Pack,
  header: Parameters<tar.Pack['entry']>[0],
  content: Uint8Array = NOTHING,
): Promise<void> {
  return new Promise((done, fail) => {
    pack.entry(header, content as Buffer, (error) => (error ? fail(error) : done()))
  })
}
