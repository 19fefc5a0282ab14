/**
 * The layer of a copying step, put together in memory over the image that it is copied into: destinations lead through the image's
 * own symbolic links, directories that are there stay as they are, and no file of it ever lies on this machine's file system.
 */
import { type DirectoryInode, type Inode, type Metadata, newDirectory } from '../erofs/inode.ts'
import { sourceInvalid } from '../image-error.ts'
import { imageLimits } from '../limits.ts'
import { settleOver } from '../whiteouts.ts'
import { type Account, ROOT } from './account.ts'
import { type FoundPath, type Look, lookIn, textOf, walk } from './tree-path.ts'

export interface CopiedTreeOptions {
  /** What the image shows. */
  readonly below: DirectoryInode
  /** Who owns all that is copied; absent: who owned it before, and root what is made on the way. */
  readonly account?: Account | undefined
  /** Permission bits of all that is copied; absent: as they were. */
  readonly mode?: number | undefined
}

export class CopiedTree {
  readonly #root: DirectoryInode = { ...newDirectory(), implicit: true }
  readonly #options: CopiedTreeOptions
  readonly #look: Look
  /** Names of one file stay names of one file, whatever owner and mode they get. */
  readonly #owned = new Map<Inode, Inode>()
  #entries = 0

  constructor(options: CopiedTreeOptions) {
    this.#options = options
    const own = lookIn(this.#root)
    const below = lookIn(options.below)
    this.#look = (names) => own(names) ?? below(names)
  }

  get isEmpty(): boolean {
    return this.#root.children.size === 0
  }

  /** Where a path of the image leads. */
  find(path: string): FoundPath {
    return walk(this.#look, path, { last: 'follow' })
  }

  /** Makes a directory with those above it, where they are missing. */
  makeDirectory(path: string): readonly string[] {
    const { names, inode } = this.find(path)
    if (inode && inode.kind !== 'directory') throw isFile(names)
    if (!inode) this.#directory(names)
    return names
  }

  /** Puts a directory: one that is there keeps its owner and mode. */
  putDirectory(path: string, inode: DirectoryInode): void {
    const { names, inode: there } = this.find(path)
    if (there && there.kind !== 'directory') throw isFile(names)
    if (there || names.length === 0) return
    const parent = this.#directory(names.slice(0, -1))
    this.#count()
    const own = { ...inode, ...this.#ownership(inode), implicit: false, children: new Map() }
    parent.children.set(names.at(-1) ?? '', own)
  }

  /** Puts anything else: it takes the place of what is there, unless that is a directory. */
  put(path: string, inode: Exclude<Inode, DirectoryInode>): void {
    const { names, inode: there } = walk(this.#look, path, { last: 'keep' })
    const name = names.at(-1)
    if (name === undefined || there?.kind === 'directory') {
      throw sourceInvalid(
        `${textOf(names)} is a directory of the image, and a file in what is copied.`,
        'Copy it to another place, or remove the directory first.',
      )
    }
    const parent = this.#directory(names.slice(0, -1))
    this.#count()
    parent.children.set(name, this.#own(inode))
  }

  /** A second name for a file that was put before. */
  link(path: string, target: string): void {
    const { inode } = walk(this.#look, target, { last: 'keep' })
    if (!inode || inode.kind === 'directory' || this.#owned.get(inode) !== inode) {
      throw sourceInvalid(
        `The archive has a hard link to nothing: ${JSON.stringify(path.slice(0, 200))}.`,
        'Pack it again without.',
      )
    }
    this.put(path, inode)
  }

  /** Makes the tree fit to be written over the image. */
  settled(): DirectoryInode {
    settleOver(this.#root, this.#options.below)
    return this.#root
  }

  #own<T extends Exclude<Inode, DirectoryInode>>(inode: T): Inode {
    const known = this.#owned.get(inode)
    if (known) return known
    const isLink = inode.kind === 'symlink'
    const owned: Inode = { ...inode, ...this.#ownership(inode), ...(isLink ? { mode: 0o777 } : {}) }
    this.#owned.set(inode, owned)
    this.#owned.set(owned, owned)
    return owned
  }

  #ownership({ mode }: Metadata): Partial<Metadata> {
    return { ...this.#options.account, mode: this.#options.mode ?? mode }
  }

  /** An own directory at a place without links; where the image has one, it shows as that does. */
  #directory(names: readonly string[]): DirectoryInode {
    let directory = this.#root
    let below: Inode | undefined = this.#options.below
    for (const name of names) {
      below = below?.kind === 'directory' ? below.children.get(name) : undefined
      let child = directory.children.get(name)
      if (child?.kind !== 'directory') {
        this.#count()
        const isThere = below?.kind === 'directory'
        child = isThere
          ? { ...newDirectory(), implicit: true }
          : newDirectory({ mode: 0o755, ...(this.#options.account ?? ROOT) })
        directory.children.set(name, child)
      }
      directory = child
    }
    return directory
  }

  #count(): void {
    this.#entries += 1
    if (this.#entries <= imageLimits.layerEntriesMax) return
    throw sourceInvalid(
      `The step copies more than ${imageLimits.layerEntriesMax} files.`,
      'Copy less, or in several steps.',
    )
  }
}

/** Puts the content of a directory below a path, whose own owner and mode are nobody's copy; anything else becomes the path. */
export function putContent(into: CopiedTree, path: string, inode: Inode): void {
  if (inode.kind === 'directory') into.putDirectory(path, newDirectory())
  putTree(into, path, inode)
}

/** Puts an inode under a path, with all that lies below it. */
function putTree(into: CopiedTree, path: string, inode: Inode): void {
  if (inode.kind === 'whiteout') return
  if (inode.kind !== 'directory') {
    into.put(path, inode)
    return
  }
  into.putDirectory(path, inode)
  for (const [name, child] of inode.children) putTree(into, `${path}/${name}`, child)
}

function isFile(names: readonly string[]): Error {
  return sourceInvalid(
    `${textOf(names)} is a file of the image, and a directory in what is copied.`,
    'Copy to another place, or remove the file first.',
  )
}
