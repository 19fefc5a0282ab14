/**
 * Deletions, as OCI layers write them (`.wh.name`, `.wh..wh..opq`) and as overlay file systems read them (character device
 * 0/0). gVisor's EROFS has no xattrs, so an opaque directory becomes one whiteout for each name that the layers below have
 * there and this layer lacks, all the way down.
 */
import { type DirectoryInode, type Inode, newDirectory, newWhiteout } from './erofs/inode.ts'
import type { LayerTree } from './layer-tree.ts'

const PREFIX = '.wh.'
const RESERVED = '.wh..wh.'
const OPAQUE = '.wh..wh..opq'

/** Deletions seen in one layer, applied when all of it has been read: they concern the layers below alone. */
export class Whiteouts {
  readonly #paths: { readonly directory: string; readonly name: string }[] = []

  /** Takes an entry when its name is a deletion mark. */
  take(path: string, tree: LayerTree): boolean {
    const trimmed = path.replace(/\/+$/, '')
    const slash = trimmed.lastIndexOf('/')
    const directory = trimmed.slice(0, slash + 1)
    const name = trimmed.slice(slash + 1)
    if (!name.startsWith(PREFIX)) return false
    if (name === OPAQUE) tree.directory(directory).opaque = true
    else if (!name.startsWith(RESERVED) && name.length > PREFIX.length) {
      this.#paths.push({ directory, name: name.slice(PREFIX.length) })
      tree.hide(directory + name.slice(PREFIX.length))
    }
    return true
  }

  /** A name that the layer deletes and also has is new: what lies below must not shine through. */
  apply(tree: LayerTree): void {
    for (const { directory, name } of this.#paths) {
      if (name === '.' || name === '..') continue
      const parent = tree.directory(directory)
      const present = parent.children.get(name)
      if (!present) parent.children.set(name, newWhiteout())
      else if (present.kind === 'directory') present.opaque = true
    }
  }
}

/**
 * Makes a layer's tree fit to be written over `below`, the merged view of all layers under it: opaque marks are expanded,
 * whiteouts of nothing dropped, and directories that only exist because something lies in them look as they did.
 */
export function settleOver(layer: DirectoryInode, below: Inode | undefined, hidden = false): void {
  const lower = below?.kind === 'directory' ? below : undefined
  if (layer.implicit && lower && !hidden) {
    const { mode, uid, gid, mtimeSeconds, mtimeNanoseconds } = lower
    Object.assign(layer, { mode, uid, gid, mtimeSeconds, mtimeNanoseconds })
  }
  const hides = hidden || layer.opaque
  for (const [name, child] of layer.children) {
    const under = lower?.children.get(name)
    if (child.kind === 'directory') settleOver(child, under, hides)
    else if (child.kind === 'whiteout' && !under) layer.children.delete(name)
  }
  layer.opaque = false
  if (!hides || !lower) return
  for (const name of lower.children.keys()) {
    if (!layer.children.has(name)) layer.children.set(name, newWhiteout())
  }
}

/** What is seen when a settled layer lies over `below`. Neither is changed. */
export function mergedOver(layer: DirectoryInode, below: Inode | undefined): DirectoryInode {
  const merged = newDirectory(layer)
  const lower = below?.kind === 'directory' ? below.children : new Map<string, Inode>()
  for (const [name, inode] of lower) merged.children.set(name, inode)
  for (const [name, inode] of layer.children) {
    if (inode.kind === 'whiteout') merged.children.delete(name)
    else if (inode.kind === 'directory')
      merged.children.set(name, mergedOver(inode, lower.get(name)))
    else merged.children.set(name, inode)
  }
  return merged
}
