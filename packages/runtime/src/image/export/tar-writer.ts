/** A tree as a pax tar. Names keep their bytes; what ustar can't say goes into a pax header. */
import type { DirectoryInode, Inode } from '../erofs/inode.ts'
import { readContent } from '../erofs/read-tree.ts'
import { RECORD_BYTES } from '../tar/header.ts'

const NAME_BYTES_MAX = 100
const OCTAL_ID_MAX = 0o7777777
const OCTAL_SIZE_MAX = 0o77777777777
const TYPES = {
  file: '0',
  link: '1',
  symlink: '2',
  whiteout: '3',
  directory: '5',
  fifo: '6',
} as const

export interface TarTreeOptions {
  /** Deletions as files named `.wh.NAME`. Without it the tree has none. */
  readonly whiteouts: boolean
}

/** All below the root, parents first, sorted; the root itself comes first. */
export async function* tarOfTree(
  root: DirectoryInode,
  options: TarTreeOptions,
): AsyncGenerator<Uint8Array> {
  const first = new Map<Inode, string>()
  yield* entry('./', root)
  yield* below(root, '', { first, ...options })
  yield Buffer.alloc(2 * RECORD_BYTES)
}

/** One file of an archive whose content is known beforehand. */
export async function* tarFile(
  path: string,
  sizeBytes: number,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const metadata = { mode: 0o644, uid: 0, gid: 0, mtimeSeconds: 0, mtimeNanoseconds: 0 }
  yield* head({ path, type: TYPES.file, sizeBytes, target: '', ...metadata })
  yield* content
  yield padding(sizeBytes)
}

interface Walking extends TarTreeOptions {
  /** The first name of each file that has several. */
  readonly first: Map<Inode, string>
}

async function* below(
  directory: DirectoryInode,
  prefix: string,
  walking: Walking,
): AsyncGenerator<Uint8Array> {
  for (const name of [...directory.children.keys()].sort()) {
    const inode = directory.children.get(name) as Inode
    const path = prefix + name
    const known = walking.first.get(inode)
    if (inode.kind === 'whiteout') {
      if (walking.whiteouts) yield* head(record(`${prefix}.wh.${name}`, inode, TYPES.file))
    } else if (inode.kind === 'directory') {
      yield* entry(`${path}/`, inode)
      yield* below(inode, `${path}/`, walking)
    } else if (known !== undefined) {
      yield* head({ ...record(path, inode, TYPES.link), target: known, sizeBytes: 0 })
    } else {
      walking.first.set(inode, path)
      yield* entry(path, inode)
    }
  }
}

async function* entry(path: string, inode: Inode): AsyncGenerator<Uint8Array> {
  yield* head(record(path, inode, TYPES[inode.kind]))
  if (inode.kind !== 'file') return
  yield* readContent(inode)
  yield padding(inode.sizeBytes)
}

interface TarRecord {
  readonly path: string
  readonly type: string
  readonly target: string
  readonly sizeBytes: number
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtimeSeconds: number
  readonly mtimeNanoseconds: number
}

function record(path: string, inode: Inode, type: string): TarRecord {
  const { mode, uid, gid, mtimeSeconds, mtimeNanoseconds } = inode
  return {
    ...{ path, type, mode, uid, gid, mtimeSeconds, mtimeNanoseconds },
    target: inode.kind === 'symlink' ? inode.target : '',
    sizeBytes: inode.kind === 'file' ? inode.sizeBytes : 0,
  }
}

function* head(of: TarRecord): Generator<Uint8Array> {
  const extra = paxRecords(of)
  if (extra !== '') {
    const body = Buffer.from(extra, 'latin1')
    const pax = { ...of, path: 'PaxHeaders/entry', type: 'x', target: '', sizeBytes: body.length }
    yield header({ ...pax, uid: 0, gid: 0, mode: 0o644 })
    yield body
    yield padding(body.length)
  }
  yield header(of)
}

function paxRecords(of: TarRecord): string {
  const records: [string, string][] = []
  const { path, target, sizeBytes, uid, gid, mtimeSeconds, mtimeNanoseconds } = of
  if (path.length > NAME_BYTES_MAX) records.push(['path', path])
  if (target.length > NAME_BYTES_MAX) records.push(['linkpath', target])
  if (sizeBytes > OCTAL_SIZE_MAX) records.push(['size', `${sizeBytes}`])
  if (uid > OCTAL_ID_MAX) records.push(['uid', `${uid}`])
  if (gid > OCTAL_ID_MAX) records.push(['gid', `${gid}`])
  if (mtimeNanoseconds > 0 || mtimeSeconds > OCTAL_SIZE_MAX) {
    const fraction = `${mtimeNanoseconds}`.padStart(9, '0').replace(/0+$/, '')
    records.push(['mtime', fraction === '' ? `${mtimeSeconds}` : `${mtimeSeconds}.${fraction}`])
  }
  return records.map(paxRecord).join('')
}

/** The length counts its own digits. */
function paxRecord([key, value]: readonly [string, string]): string {
  const rest = ` ${key}=${value}\n`
  let length = rest.length + 1
  while (`${length}${rest}`.length !== length) length += 1
  return `${length}${rest}`
}

function header(of: TarRecord): Buffer {
  const out = Buffer.alloc(RECORD_BYTES)
  const octal = (value: number, at: number, digits: number, max: number): void => {
    const shown = value > max ? 0 : value
    out.write(shown.toString(8).padStart(digits, '0'), at, 'latin1')
  }
  out.write(of.path.slice(0, NAME_BYTES_MAX), 0, 'latin1')
  octal(of.mode, 100, 7, OCTAL_ID_MAX)
  octal(of.uid, 108, 7, OCTAL_ID_MAX)
  octal(of.gid, 116, 7, OCTAL_ID_MAX)
  octal(of.sizeBytes, 124, 11, OCTAL_SIZE_MAX)
  octal(of.mtimeSeconds, 136, 11, OCTAL_SIZE_MAX)
  out.write(of.type, 156, 'latin1')
  out.write(of.target.slice(0, NAME_BYTES_MAX), 157, 'latin1')
  out.write('ustar\u000000', 257, 'latin1')
  out.write('        ', 148, 'latin1')
  const sum = out.reduce((total, byte) => total + byte, 0)
  out.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return out
}

function padding(sizeBytes: number): Buffer {
  return Buffer.alloc((RECORD_BYTES - (sizeBytes % RECORD_BYTES)) % RECORD_BYTES)
}
