/**
 * A tar of a sandbox's directory as a directory of this machine. What is in it, an episode has made: nothing of it is trusted.
 * Names are bytes: in here a path is text of which each character is one byte.
 */
import { createWriteStream } from 'node:fs'
import { link, lstat, mkdir, rm, symlink } from 'node:fs/promises'
import { dirname, join, posix, resolve, sep } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandlotError } from '@sandlot/protocol'
import * as tar from 'tar-stream'
import { bytesAsText, onDisk, shownName, textOfName } from './byte-names.ts'
import { localFailure } from './local-failure.ts'

/** One entry of a tar that is being read. */
type Source = tar.Extract extends AsyncIterable<infer Item> ? Item : never

/** Unpacks a tar below `local`, in constant memory; whatever the tar says, nothing is written elsewhere. */
export async function downloadTree(
  content: AsyncIterable<Uint8Array>,
  local: string,
): Promise<void> {
  const root = bytesAsText(resolve(local))
  await mkdir(onDisk(root), { recursive: true }).catch((error) => {
    throw localFailure(error, `cannot make ${local}`)
  })
  // Its types don't know the option.
  const extract = tar.extract({ filenameEncoding: 'latin1' } as object)
  const unpacking = (async () => {
    for await (const item of extract) await unpackEntry(item, root)
  })()
  const lost: unknown[] = []
  const feeding = pipeline(Readable.from(watched(content, (error) => lost.push(error))), extract)
  const [unpacked, fed] = await Promise.allSettled([unpacking, feeding])
  // A stream that breaks off breaks the entries, and an entry that is refused breaks the stream: the first cause is told.
  if (lost.length > 0) throw lost[0]
  if (unpacked.status === 'rejected') throw unpacked.reason
  if (fed.status === 'rejected') throw fed.reason
}

/** Tells of what the content itself fails with, and not of what its reader does to it. */
async function* watched(
  content: AsyncIterable<Uint8Array>,
  onError: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  const source = content[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await source.next().catch((error) => {
        onError(error)
        throw error
      })
      if (next.done) return
      yield next.value
    }
  } finally {
    await source.return?.()
  }
}

async function unpackEntry(item: Source, root: string): Promise<void> {
  const pax = item.header.pax as { readonly path?: string; readonly linkpath?: string } | undefined
  // Records of pax are UTF-8; names that are not stand in the headers themselves.
  const name = pax?.path ? bytesAsText(pax.path) : item.header.name
  const target = pax?.linkpath ? bytesAsText(pax.linkpath) : (item.header.linkname ?? '')
  for (const each of [name, target]) checkName(each)
  try {
    await unpack(item, root, { name, target })
  } catch (error) {
    throw localFailure(error, `cannot write ${shownName(name)} below ${shownName(root)}`)
  }
}

interface Names {
  readonly name: string
  readonly target: string
}

async function unpack(item: Source, root: string, { name, target }: Names): Promise<void> {
  const { type, mode = 0o644 } = item.header
  const path = placeOf(root, name)
  if (type === 'directory') {
    await makeParents(root, path)
  } else if (type === 'file' || type === 'contiguous-file') {
    await makeRoom(root, path)
    // As an iterable: a pipe from an entry that is destroyed by now would never end.
    const content = Readable.from(item as AsyncIterable<Uint8Array>)
    const file = createWriteStream(onDisk(path), { flags: 'wx', mode: mode & 0o777 })
    await pipeline(content, file)
    return
  } else if (type === 'symlink' && staysInside(name, target)) {
    await makeRoom(root, path)
    await symlink(onDisk(target), onDisk(path))
  } else if (type === 'link' && target !== '') {
    await makeHardLink(root, placeOf(root, target), path)
  }
  item.resume()
}

/** Where names are text, one that is no text can't be written, and another one in its place would be a lie. */
function checkName(name: string): void {
  if (sep === '/' || textOfName(name) !== undefined) return
  throw new SandlotError('local_file_failed', `the name ${shownName(name)} is not UTF-8`, {
    hint: 'The file systems of this machine take no such names: rename it in the sandbox.',
  })
}

function placeOf(root: string, name: string): string {
  const path = resolve(root, name)
  if (path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)) return path
  throw unsafe(`the entry ${shownName(name)} points outside`)
}

/**
 * Whether a symlink leads to somewhere below the root: relative, and up only at its beginning. Else a way through another link
 * could go up from elsewhere than it says.
 */
function staysInside(name: string, target: string): boolean {
  if (target === '' || posix.isAbsolute(target)) return false
  if (sep !== '/' && /[\\:]/.test(target)) return false
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const ups = parts.findIndex((part) => part !== '..')
  const upCount = ups === -1 ? parts.length : ups
  if (parts.slice(upCount).includes('..')) return false
  const depth = posix.normalize(name).split('/').filter(Boolean).length - 1
  return upCount <= depth
}

/** Makes a directory and those above it. A symlink that an earlier entry made must not lead a later one out. */
async function makeParents(root: string, directory: string): Promise<void> {
  let path = root
  for (const part of directory.slice(root.length).split(sep)) {
    if (part === '') continue
    path = join(path, part)
    const found = await lstat(onDisk(path)).catch(() => undefined)
    if (!found) await mkdir(onDisk(path))
    else if (!found.isDirectory())
      throw unsafe(`${shownName(path)} is no directory and has entries below`)
  }
}

/** What an earlier entry, or an earlier download, left at this place goes. */
async function makeRoom(root: string, path: string): Promise<void> {
  await makeParents(root, dirname(path))
  const found = await lstat(onDisk(path)).catch(() => undefined)
  if (found?.isDirectory())
    throw unsafe(`${shownName(path)} is a directory, and a file in the sandbox`)
  await rm(onDisk(path), { force: true })
}

async function makeHardLink(root: string, target: string, path: string): Promise<void> {
  await makeParents(root, dirname(target))
  const found = await lstat(onDisk(target)).catch(() => undefined)
  if (!found?.isFile() || target === path) return
  await makeRoom(root, path)
  await link(onDisk(target), onDisk(path))
}

function unsafe(what: string): SandlotError {
  return new SandlotError('permission_denied', `the download was stopped: ${what}`, {
    hint: 'The sandbox holds names or links that would be written elsewhere than they say.',
  })
}
