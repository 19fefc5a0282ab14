/**
 * Paths in a tree as a kernel walks them: symbolic links are followed, `..` goes up and never out. Nothing of it touches a file
 * system. Names are latin1 strings, one character a byte.
 */
import type { DirectoryInode, Inode } from '../erofs/inode.ts'
import { sourceInvalid } from '../image-error.ts'
import { imageLimits } from '../limits.ts'

export interface FoundPath {
  /** Without links, from the root. */
  readonly names: readonly string[]
  /** Undefined where nothing is. */
  readonly inode: Inode | undefined
}

/** What lies at a place of a tree, given names without links. */
export type Look = (names: readonly string[]) => Inode | undefined

export function lookIn(root: DirectoryInode): Look {
  return (names) => {
    let inode: Inode | undefined = root
    for (const name of names) {
      inode = inode?.kind === 'directory' ? inode.children.get(name) : undefined
    }
    return inode
  }
}

/** Text of a step as the bytes of a name. */
export function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

export function textOf(names: readonly string[]): string {
  return `/${Buffer.from(names.join('/'), 'latin1').toString('utf8')}`
}

/** A path of a step, absolute: below the working directory where it is not. */
export function absolutePath(path: string, workdir: string): string {
  return path.startsWith('/') ? path : `${workdir}/${path}`
}

/**
 * Walks an absolute path. What is missing is as if it were a directory. Fails with `image_source_invalid` where the path leads
 * through a file, or in circles.
 */
export function walk(
  look: Look,
  path: string,
  options: { readonly last: 'follow' | 'keep' },
): FoundPath {
  const left = path.split('/').reverse()
  let names: string[] = []
  let links = 0
  while (left.length > 0) {
    const name = left.pop() ?? ''
    if (name === '' || name === '.') continue
    if (name === '..') {
      names.pop()
      continue
    }
    if (name.length > imageLimits.nameBytesMax || names.length >= imageLimits.pathDepthMax) {
      throw refused(path, 'is too long')
    }
    const inode = look([...names, name])
    const isLast = left.every((part) => part === '' || part === '.')
    if (inode?.kind === 'symlink' && !(isLast && options.last === 'keep')) {
      links += 1
      if (links > imageLimits.symlinksMax) throw refused(path, 'leads in circles')
      if (inode.target.startsWith('/')) names = []
      left.push(...inode.target.split('/').reverse())
      continue
    }
    const leadsThrough = inode !== undefined && inode.kind !== 'directory' && !isLast
    if (leadsThrough) throw refused(path, `leads through ${textOf([...names, name])}, a file`)
    names.push(name)
  }
  return { names, inode: look(names) }
}

function refused(path: string, why: string): Error {
  const shown = Buffer.from(path.slice(0, 200), 'latin1').toString('utf8')
  return sourceInvalid(`The path ${JSON.stringify(shown)} ${why}.`, 'Name another path.')
}
