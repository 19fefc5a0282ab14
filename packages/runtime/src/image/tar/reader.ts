/**
 * Reads a tar archive as a stream. Own code, because names must survive byte for byte: tar-stream decodes them as UTF-8.
 */
import { imageLimits } from '../limits.ts'
import { ByteSource } from './byte-source.ts'
import {
  decodeHeader,
  decodePax,
  isZeroRecord,
  RECORD_BYTES,
  TarError,
  type TarHeader,
} from './header.ts'
import { filled, type SparseFile, sparseFile } from './sparse.ts'

const TYPES: Readonly<Record<string, TarEntry['type']>> = {
  '0': 'file',
  '7': 'file',
  '1': 'link',
  '2': 'symlink',
  '3': 'characterDevice',
  '4': 'blockDevice',
  '5': 'directory',
  '6': 'fifo',
}

const ATTRIBUTES_MAX = 16

export interface TarEntry {
  readonly type:
    | 'file'
    | 'link'
    | 'symlink'
    | 'characterDevice'
    | 'blockDevice'
    | 'directory'
    | 'fifo'
  /** As in the archive, not checked. One character is one byte. */
  readonly path: string
  readonly linkPath: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtimeSeconds: number
  readonly mtimeNanoseconds: number
  readonly deviceMajor: number
  readonly deviceMinor: number
  readonly sizeBytes: number
  /** Names of its extended attributes, such as `user.mime_type` and `security.capability`. */
  readonly attributes: readonly string[]
  /** To be read before the next entry is asked for; what isn't read is skipped. */
  readonly content: AsyncIterable<Uint8Array>
}

/** Entries in order. The stream is read to its very end, so that a digest counted over it is complete. */
export async function* readTar(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const source = new ByteSource(chunks)
  try {
    const globals = new Map<string, string>()
    let entries = 0
    for (;;) {
      const found = await nextHeader(source, globals)
      if (!found) break
      entries += 1
      if (entries > imageLimits.layerEntriesMax) {
        throw new TarError(`the tar archive has more than ${imageLimits.layerEntriesMax} entries`)
      }
      const sparse = sparseFile(found.pax)
      const entry = toEntry(found.header, found.pax, sparse)
      // What the archive holds; a file with holes is longer.
      const unread = { bytes: storedBytes(entry, found) }
      const padding = (RECORD_BYTES - (unread.bytes % RECORD_BYTES)) % RECORD_BYTES
      const stored = contentOf(source, unread)
      yield { ...entry, content: sparse ? filled(stored, sparse.sizeBytes) : stored }
      await skip(contentOf(source, unread))
      await readExactly(source, padding)
    }
    await source.drain()
  } finally {
    await source.close()
  }
}

interface FoundHeader {
  readonly header: TarHeader
  readonly pax: ReadonlyMap<string, string>
}

/** The next real entry with all that the extension headers before it say; undefined at the end of the archive. */
async function nextHeader(
  source: ByteSource,
  globals: Map<string, string>,
): Promise<FoundHeader | undefined> {
  const own = new Map<string, string>()
  for (let extensions = 0; ; extensions += 1) {
    if (extensions > imageLimits.tarExtensionsMax) {
      throw new TarError('the tar archive is damaged: too many extension headers in a row')
    }
    const record = await source.read(RECORD_BYTES)
    if (record.length < RECORD_BYTES) throw new TarError('the tar archive ends too early')
    if (isZeroRecord(record)) return undefined
    const header = decodeHeader(record)
    switch (header.type) {
      case 'x':
        for (const [key, value] of decodePax(await extension(source, header))) own.set(key, value)
        break
      case 'g':
        for (const [key, value] of decodePax(await extension(source, header)))
          globals.set(key, value)
        checkSize(globals)
        break
      case 'L':
        own.set('path', untilNul(await extension(source, header)))
        break
      case 'K':
        own.set('linkpath', untilNul(await extension(source, header)))
        break
      case 'V':
        await extension(source, header)
        break
      default:
        return { header, pax: new Map([...globals, ...own]) }
    }
  }
}

function checkSize(globals: ReadonlyMap<string, string>): void {
  let sizeBytes = 0
  for (const [key, value] of globals) sizeBytes += key.length + value.length
  if (sizeBytes <= imageLimits.tarExtensionBytesMax) return
  throw new TarError('the tar archive is damaged: its global headers are too large')
}

async function extension(source: ByteSource, header: TarHeader): Promise<Buffer> {
  if (header.sizeBytes > imageLimits.tarExtensionBytesMax) {
    throw new TarError('the tar archive is damaged: an extension header is too large')
  }
  const body = await readExactly(source, header.sizeBytes)
  await readExactly(source, (RECORD_BYTES - (header.sizeBytes % RECORD_BYTES)) % RECORD_BYTES)
  return body
}

function toEntry(
  header: TarHeader,
  pax: ReadonlyMap<string, string>,
  sparse: SparseFile | undefined,
): Omit<TarEntry, 'content'> {
  const path = sparse?.path ?? pax.get('path') ?? header.name
  if (header.type === 'S' || (sparse && header.type !== '0')) {
    throw new TarError(`sparse files are not supported in this format: ${printable(path)}`)
  }
  const type = header.type === '0' && path.endsWith('/') ? 'directory' : TYPES[header.type]
  if (!type) throw new TarError(`unknown kind of tar entry: ${printable(path)}`)
  return {
    type,
    path,
    linkPath: pax.get('linkpath') ?? header.linkName,
    mode: header.mode,
    uid: checkedId(paxNumber(pax, 'uid') ?? header.uid, path),
    gid: checkedId(paxNumber(pax, 'gid') ?? header.gid, path),
    ...modified(header, pax),
    deviceMajor: header.deviceMajor,
    deviceMinor: header.deviceMinor,
    // The other kinds are headers alone, whatever their size field says.
    sizeBytes: type === 'file' ? (sparse?.sizeBytes ?? storedSize(header, pax, path)) : 0,
    attributes: attributesOf(pax),
  }
}

/** As star and GNU tar write them, or as bsdtar does besides. */
function attributesOf(pax: ReadonlyMap<string, string>): readonly string[] {
  const names = new Set<string>()
  for (const key of pax.keys()) {
    const name = /^(?:SCHILY|LIBARCHIVE)\.xattr\.(.+)$/s.exec(key)?.[1]
    if (name !== undefined && names.size < ATTRIBUTES_MAX) names.add(printable(name).slice(1, -1))
  }
  return [...names]
}

function storedBytes({ type, path }: Omit<TarEntry, 'content'>, found: FoundHeader): number {
  return type === 'file' ? storedSize(found.header, found.pax, path) : 0
}

function storedSize(header: TarHeader, pax: ReadonlyMap<string, string>, path: string): number {
  return checkedSize(paxNumber(pax, 'size') ?? header.sizeBytes, path)
}

/** Archive text for a message: bytes outside printable ASCII are escaped. */
export function printable(path: string): string {
  return JSON.stringify(path.slice(0, 200)).replace(
    /[^ -~]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

async function* contentOf(
  source: ByteSource,
  unread: { bytes: number },
): AsyncGenerator<Uint8Array> {
  for await (const piece of source.pieces(unread.bytes)) {
    unread.bytes -= piece.length
    yield piece
  }
  if (unread.bytes > 0) throw new TarError('the tar archive ends too early')
}

async function skip(pieces: AsyncGenerator<Uint8Array>): Promise<void> {
  while (!(await pieces.next()).done) {}
}

async function readExactly(source: ByteSource, count: number): Promise<Buffer> {
  const bytes = await source.read(count)
  if (bytes.length < count) throw new TarError('the tar archive ends too early')
  return bytes
}

function untilNul(body: Buffer): string {
  const end = body.indexOf(0)
  return body.toString('latin1', 0, end < 0 ? body.length : end)
}

function paxNumber(pax: ReadonlyMap<string, string>, key: string): number | undefined {
  const value = pax.get(key)
  if (value === undefined) return undefined
  if (!/^-?[0-9]{1,16}(\.[0-9]*)?$/.test(value)) {
    throw new TarError(`the tar archive is damaged: bad pax ${key}`)
  }
  return Number(value)
}

/** From the digits: a double can't hold seconds and nanoseconds together. A layer knows no time before 1970. */
function modified(
  header: TarHeader,
  pax: ReadonlyMap<string, string>,
): Pick<TarEntry, 'mtimeSeconds' | 'mtimeNanoseconds'> {
  const whole = paxNumber(pax, 'mtime') ?? header.mtimeSeconds
  const [seconds = '', fraction = ''] = (pax.get('mtime') ?? `${whole}`).split('.')
  if (whole < 0) return { mtimeSeconds: 0, mtimeNanoseconds: 0 }
  return {
    mtimeSeconds: Number(seconds),
    mtimeNanoseconds: Number(fraction.slice(0, 9).padEnd(9, '0')),
  }
}

function checkedId(id: number, path: string): number {
  if (Number.isInteger(id) && id >= 0 && id <= 0xffffffff) return id
  throw new TarError(`owner out of range: ${printable(path)}`)
}

function checkedSize(size: number, path: string): number {
  if (Number.isSafeInteger(size) && size >= 0) return size
  throw new TarError(`size out of range: ${printable(path)}`)
}
