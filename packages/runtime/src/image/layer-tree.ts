/**
 * The tree of one layer, filled from tar entries. Nothing of it touches this machine's file system, so the only dangers are
 * names: `..`, absolute paths and paths through a symbolic link are refused, never resolved.
 */
import { type DirectoryInode, type Inode, type Metadata, newDirectory } from './erofs/inode.ts'
import { imageLimits } from './limits.ts'
import { TarError } from './tar/header.ts'
import { printable } from './tar/reader.ts'

export class LayerTree {
  readonly root: DirectoryInode = { ...newDirectory(), implicit: true }
  #entries = 0

  /** Puts an inode at a path. A later entry replaces an earlier one, a directory over a directory keeps what lies in it. */
  put(path: string, inode: Inode): void {
    this.#count(path)
    const names = splitPath(path)
    const name = names.pop()
    if (name === undefined) {
      if (inode.kind !== 'directory') throw new TarError('the root of a layer must be a directory')
      adoptMetadata(this.root, inode)
      return
    }
    const parent = this.#directory(names, path)
    const present = parent.children.get(name)
    if (present?.kind === 'directory' && inode.kind === 'directory') adoptMetadata(present, inode)
    else parent.children.set(name, inode)
  }

  /** A second name for a file that came before. */
  link(path: string, target: string): void {
    const inode = this.find(splitPath(target))
    if (!inode || inode.kind === 'directory') {
      throw new TarError(`hard link to nothing: ${printable(path)} to ${printable(target)}`)
    }
    this.put(path, inode)
  }

  /** The directory at a path, made when it is missing. */
  directory(path: string): DirectoryInode {
    return this.#directory(splitPath(path), path)
  }

  find(names: readonly string[]): Inode | undefined {
    let inode: Inode | undefined = this.root
    for (const name of names)
      inode = inode?.kind === 'directory' ? inode.children.get(name) : undefined
    return inode
  }

  #directory(names: readonly string[], path: string): DirectoryInode {
    let directory = this.root
    for (const name of names) {
      let child = directory.children.get(name)
      if (!child) {
        this.#count(path)
        child = { ...newDirectory(), implicit: true }
        directory.children.set(name, child)
      }
      if (child.kind !== 'directory') {
        throw new TarError(
          `the path leads through something that is no directory: ${printable(path)}`,
        )
      }
      directory = child
    }
    return directory
  }

  #count(path: string): void {
    this.#entries += 1
    if (this.#entries > imageLimits.layerEntriesMax) {
      throw new TarError(`more than ${imageLimits.layerEntriesMax} entries, at ${printable(path)}`)
    }
  }
}

/** The names of a path inside an archive. `./a//b/` is `a`, `b`. */
export function splitPath(path: string): string[] {
  if (path.startsWith('/')) throw new TarError(`absolute path: ${printable(path)}`)
  if (path.length > imageLimits.pathBytesMax)
    throw new TarError(`path too long: ${printable(path)}`)
  if (path.includes('\0')) throw new TarError(`path with a NUL: ${printable(path)}`)
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  if (names.includes('..')) throw new TarError(`path with "..": ${printable(path)}`)
  if (names.length > imageLimits.pathDepthMax)
    throw new TarError(`path too deep: ${printable(path)}`)
  if (names.some((name) => name.length > imageLimits.nameBytesMax)) {
    throw new TarError(`name too long: ${printable(path)}`)
  }
  return names
}

function adoptMetadata(directory: DirectoryInode, from: DirectoryInode): void {
  const { mode, uid, gid, mtimeSeconds, mtimeNanoseconds } = from satisfies Metadata
  Object.assign(directory, { mode, uid, gid, mtimeSeconds, mtimeNanoseconds })
  directory.implicit = false
}
