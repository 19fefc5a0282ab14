/** Tars of this machine's files, made as they are read. */
import { createHash, hash } from 'node:crypto'
import { constants, createReadStream, lstatSync, readFileSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { type CopiedEntry, SandlotError } from '@sandlot/protocol'
import * as tar from 'tar-stream'
import { nameOf } from './byte-names.ts'
import { localFailure } from './local-failure.ts'
import { longName, paxRecord } from './tar-extension.ts'

/** A file of no more is read in one piece, and by this thread: to ask another one costs ten times what it takes. */
const WHOLE_BYTES_MAX = 256 * 2 ** 10
const NOTHING = new Uint8Array(0)

/** One thing to be packed: where it is here, and its name in the tar. */
export interface LocalEntry {
  readonly path: string
  readonly name: string
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
interface AnyEntry {
  readonly path: string | Buffer
  readonly name: string | Buffer
}

export interface PackOptions {
  /** Say the digest of a file's bytes. */
  readonly digest?: boolean
}

/**
 * Packs a file, a link, or a directory without its content, with its mode and time; owned by root. Says what it packed: undefined is
 * a socket, a device or a FIFO, which it leaves out.
 */
export async function packEntry(
  pack: tar.Pack,
  { path, name }: AnyEntry,
  { digest = false }: PackOptions = {},
): Promise<CopiedEntry | undefined> {
  const found = lstatSync(path, { bigint: true })
  if (!found.isDirectory() && !found.isSymbolicLink() && !found.isFile()) return undefined
  const mode = Number(found.mode) & 0o7777
  const times = { mode, mtimeNs: found.mtimeNs }
  const known = { path: Buffer.from(name as string).toString('latin1'), mode, uid: 0, gid: 0 }
  if (found.isDirectory()) {
    await entry(pack, { ...headerOf(pack, { name, ...times }), type: 'directory' })
    return { kind: 'directory', ...known }
  }
  if (found.isSymbolicLink()) {
    const target = (await readlink(path, { encoding: 'buffer' })).toString('latin1')
    const header = headerOf(pack, { name, target: nameOf(target), ...times })
    await entry(pack, { ...header, type: 'symlink' })
    return { kind: 'symlink', ...known, target }
  }
  const header = { ...headerOf(pack, { name, ...times }), type: 'file' as const }
  const size = Number(found.size)
  if (size <= WHOLE_BYTES_MAX) {
    // One of no size may be a device in disguise, as those of /proc are.
    const bytes = size > 0 ? readFileSync(path) : NOTHING
    await entry(pack, header, bytes)
    const own = { sizeBytes: bytes.length, sha256: digest ? hash('sha256', bytes) : undefined }
    return { kind: 'file', ...known, ...own }
  }
  const sha256 = digest ? createHash('sha256') : undefined
  // A file that grows meanwhile is cut at the size its header promised.
  const bytes = createReadStream(path, { end: size - 1 })
  if (sha256) bytes.on('data', (chunk) => sha256.update(chunk))
  await pipeline(bytes, pack.entry({ ...header, size }))
  return { kind: 'file', ...known, sizeBytes: size, sha256: sha256?.digest('hex') }
}

/** Packs a text as a file, with the time of now. */
export function packText(pack: tar.Pack, name: string, text: string): CopiedEntry {
  const mode = 0o644
  const mtimeNs = BigInt(Date.now()) * 1_000_000n
  pack.entry({ ...headerOf(pack, { name, mode, mtimeNs }), type: 'file' }, text)
  return {
    ...{ kind: 'file', path: Buffer.from(name).toString('latin1'), mode, uid: 0, gid: 0 },
    sizeBytes: Buffer.byteLength(text),
    sha256: hash('sha256', text),
  }
}

/** Packs an empty directory, with the time of now. */
export function packDirectory(pack: tar.Pack, name: string, mode: number): CopiedEntry {
  const mtimeNs = BigInt(Date.now()) * 1_000_000n
  pack.entry({ ...headerOf(pack, { name, mode, mtimeNs }), type: 'directory' })
  const path = Buffer.from(name).toString('latin1')
  return { kind: 'directory', path, mode, uid: 0, gid: 0 }
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

interface Known {
  readonly name: string | Buffer
  /** Of a link. */
  readonly target?: string | Buffer
  readonly mode: number
  readonly mtimeNs: bigint
}

/** Seconds that tar-stream can write. */
const SECONDS_MAX = 2n ** 31n - 1n

/** The header of an entry. What doesn't fit in goes ahead of it. */
function headerOf(pack: tar.Pack, { name, target, mode, mtimeNs }: Known) {
  const seconds = mtimeNs / 1_000_000_000n
  const fits = mtimeNs >= 0n && seconds <= SECONDS_MAX
  const whole = fits && mtimeNs % 1_000_000_000n === 0n
  const header = {
    // A mode of 0 means another one to tar-stream; that it is a file no header says there.
    mode: mode | constants.S_IFREG,
    mtime: new Date(fits ? Number(seconds) * 1000 : 0),
    ...{ uid: 0, gid: 0 },
  }
  const link = target === undefined ? {} : { linkname: `${target}` }
  if (typeof name === 'string' && typeof (target ?? '') === 'string') {
    return { name, ...link, ...header, ...(whole ? {} : { pax: { mtime: decimal(mtimeNs) } }) }
  }
  // Of two headers of pax one might be lost: here is no name that tar-stream would write one for.
  if (!whole) pack.push(paxRecord('mtime', decimal(mtimeNs)))
  pack.push(longName(Buffer.from(name as string), 'L'))
  if (target !== undefined) pack.push(longName(Buffer.from(target as string), 'K'))
  return { name: 'bytes', ...(target === undefined ? {} : { linkname: 'bytes' }), ...header }
}

/** Seconds with their fraction. */
function decimal(nanoseconds: bigint): string {
  const size = nanoseconds < 0n ? -nanoseconds : nanoseconds
  const fraction = `${size % 1_000_000_000n}`.padStart(9, '0')
  return `${nanoseconds < 0n ? '-' : ''}${size / 1_000_000_000n}.${fraction}`
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
