/** Directories of this machine as tar streams, and back. */
import { createReadStream, createWriteStream } from 'node:fs'
import { chmod, lstat, mkdir, readdir, readlink, rm, stat, symlink } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandlotError } from '@sandlot/protocol'
import * as tar from 'tar-stream'

/** One entry of a tar that is being read. */
type Source = tar.Extract extends AsyncIterable<infer Item> ? Item : never

export interface TreeTarget {
  /** Called for a file. */
  readonly file: (content: AsyncIterable<Uint8Array>, mode: number) => Promise<void>
  /** Called for a directory, with a tar of its content. */
  readonly tree: (content: AsyncIterable<Uint8Array>) => Promise<void>
}

/** Hands a local file or directory over. Throws `not_found` for a path that isn't there. */
export async function packTree(local: string, target: TreeTarget): Promise<void> {
  const found = await stat(local).catch((cause) => {
    throw new SandlotError('not_found', `there is no ${local} on this machine`, {
      hint: 'Check the path.',
      cause,
    })
  })
  if (!found.isDirectory()) {
    await target.file(createReadStream(local), found.mode & 0o7777)
    return
  }
  const pack = tar.pack()
  const walking = packDirectory(pack, local, '').then(
    () => pack.finalize(),
    (error) => pack.destroy(error as Error),
  )
  await target.tree(bytesOfPack(pack))
  await walking
}

/** A tar of a directory's content, for contents that travel as blobs. */
export function tarOf(directory: string): AsyncIterable<Uint8Array> {
  const pack = tar.pack()
  packDirectory(pack, directory, '').then(
    () => pack.finalize(),
    (error) => pack.destroy(error as Error),
  )
  return bytesOfPack(pack)
}

async function packDirectory(pack: tar.Pack, root: string, below: string): Promise<void> {
  const names = await readdir(join(root, below))
  for (const name of names.sort()) {
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
      const end = found.size === 0 ? {} : { end: found.size - 1 }
      if (found.size === 0) sink.end(undefined)
      else await pipeline(createReadStream(path, end), sink)
    }
  }
}

function entry(pack: tar.Pack, header: Parameters<tar.Pack['entry']>[0]): Promise<void> {
  return new Promise((done, fail) => pack.entry(header, (error) => (error ? fail(error) : done())))
}

/** Unpacks a tar below `local`; whatever the tar says, nothing is written elsewhere. */
export async function unpackTree(content: AsyncIterable<Uint8Array>, local: string): Promise<void> {
  await mkdir(local, { recursive: true })
  const extract = tar.extract()
  const unpacking = (async () => {
    for await (const item of extract) await unpackEntry(item, resolve(local))
  })()
  await Promise.all([pipeline(Readable.from(content), extract), unpacking])
}

async function unpackEntry(item: Source, root: string): Promise<void> {
  const { name, type, linkname, mode = 0o644 } = item.header
  const path = resolve(root, name)
  const inside = path === root || path.startsWith(root + sep)
  if (!inside) throw unsafe(`the entry ${JSON.stringify(name)} points outside`)
  await refuseLinkedParents(root, dirname(path))
  if (type === 'directory') {
    await mkdir(path, { recursive: true })
  } else if (type === 'file') {
    await replaceable(path)
    await pipeline(item, createWriteStream(path, { flags: 'wx', mode: mode & 0o777 }))
    return
  } else if (type === 'symlink' && typeof linkname === 'string') {
    const target = resolve(dirname(path), linkname)
    if (target === root || target.startsWith(root + sep)) {
      await replaceable(path)
      await symlink(linkname, path)
    }
  }
  item.resume()
}

/** A symlink that an earlier entry made must not lead a later one out. */
async function refuseLinkedParents(root: string, directory: string): Promise<void> {
  let path = root
  for (const part of directory.slice(root.length).split(sep)) {
    if (part === '') continue
    path = join(path, part)
    const found = await lstat(path).catch(() => undefined)
    if (found?.isSymbolicLink())
      throw unsafe(`${JSON.stringify(path)} is a symlink and has entries below`)
  }
  await mkdir(directory, { recursive: true })
}

async function replaceable(path: string): Promise<void> {
  await rm(path, { force: true })
  await mkdir(dirname(path), { recursive: true })
}

/** Writes a stream into a local file. */
export async function writeStreamed(
  content: AsyncIterable<Uint8Array>,
  local: string,
  mode: number,
): Promise<void> {
  await mkdir(dirname(resolve(local)), { recursive: true })
  await pipeline(Readable.from(content), createWriteStream(local))
  await chmod(local, mode & 0o777)
}

function unsafe(what: string): SandlotError {
  return new SandlotError('permission_denied', `the download was stopped: ${what}`, {
    hint: 'The sandbox holds names or links that would be written outside the target directory.',
  })
}

/** streamx streams iterate as Node's do; their types don't say of what. */
function bytesOfPack(pack: tar.Pack): AsyncIterable<Uint8Array> {
  return pack as unknown as AsyncIterable<Uint8Array>
}
