/**
 * The tree of one layer, filled from tar entries. Nothing of it touches this machine's file system, so the only dangers are
 * names: `..` and absolute paths are refused. A path through a symbolic link is refused too, or, in a layer of an image, led to where a
 * kernel would find it in the files that the layer lies over.
 */
import { type DirectoryInode, type Inode, type Metadata, newDirectory } from './erofs/inode.ts'
import { imageLimits } from './limits.ts'
import { lookIn, walk } from './steps/tree-path.ts'
import { TarError } from './tar/header.ts'
import { printable } from './tar/reader.ts'

export class LayerTree {
  readonly root: DirectoryInode = { ...newDirectory(), implicit: true }
  /** What the layer lies over. Undefined: links are not followed. */
  readonly #below: DirectoryInode | undefined
  /** Names below that the layer deletes. */
  readonly #deleted = new Set<string>()
  #entries = 0

  constructor(options: { readonly over?: DirectoryInode | undefined } = {}) {
    this.#below = options.over
  }

  /** A name of the layers below is gone from here on. */
  hide(path: string): void {
    const names = splitPath(path)
    const name = names.pop() ?? ''
    this.#deleted.add([...this.#through(names), name].join('/'))
  }

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
    const parent = this.#directory(this.#through(names), path)
    const present = parent.children.get(name)
    if (present?.kind === 'directory' && inode.kind === 'directory') adoptMetadata(present, inode)
    else parent.children.set(name, inode)
  }

  /** A second name for a file that came before, or that lies below: then it comes into this layer under both names. */
  link(path: string, target: string): void {
    const names = splitPath(target)
    const name = names.pop() ?? ''
    const place = [...this.#through(names), name]
    const own = this.find(place)
    const inode = own ?? (this.#below && this.#seen(place))
    if (!inode || inode.kind === 'directory' || inode.kind === 'whiteout') {
      throw new TarError(`hard link to nothing: ${printable(path)} to ${printable(target)}`)
    }
    if (!own) this.put(place.join('/'), inode)
    this.put(path, inode)
  }

  /** The directory at a path, made when it is missing. */
  directory(path: string): DirectoryInode {
    return this.#directory(this.#through(splitPath(path)), path)
  }

  find(names: readonly string[]): Inode | undefined {
    let inode: Inode | undefined = this.root
    for (const name of names)
      inode = inode?.kind === 'directory' ? inode.children.get(name) : undefined
    return inode
  }

  /** Where the directory of these names is. */
  #through(names: readonly string[]): readonly string[] {
    if (!this.#below) return names
    const path = names.join('/')
    const found = walk((place) => this.#seen(place), path, { last: 'follow' })
    if (!found.inode || found.inode.kind === 'directory') return found.names
    throw noDirectory(path)
  }

  /** What lies there once this layer is over the others. */
  #seen(names: readonly string[]): Inode | undefined {
    let own: Inode | undefined = this.root
    let hidden = false
    for (const [index, name] of names.entries()) {
      hidden ||= this.#deleted.has(names.slice(0, index + 1).join('/'))
      if (own === undefined) continue
      if (own.kind !== 'directory') return undefined
      hidden ||= own.opaque
      own = own.children.get(name)
    }
    return own ?? (hidden || !this.#below ? undefined : lookIn(this.#below)(names))
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
      if (child.kind !== 'directory') throw noDirectory(path)
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

function noDirectory(path: string): TarError {
  return new TarError(`the path leads through something that is no directory: ${printable(path)}`)
}

function adoptMetadata(directory: DirectoryInode, from: DirectoryInode): void {
  const { mode, uid, gid, mtimeSeconds, mtimeNanoseconds } = from satisfies Metadata
  Object.assign(directory, { mode, uid, gid, mtimeSeconds, mtimeNanoseconds })
  directory.implicit = false
}
