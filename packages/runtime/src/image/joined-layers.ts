/** Layers made into one: what is seen of them over those below stays the same. */
import { type DirectoryInode, newDirectory } from './erofs/inode.ts'
import { readErofsTree } from './erofs/read-tree.ts'
import type { ImageLayer } from './image.ts'
import type { ImageTrees } from './image-trees.ts'
import { writeTreeLayer } from './tree-layer.ts'
import { settleOver } from './whiteouts.ts'

export interface Joining {
  /** How many are left; those at the bottom stay as they are, since other images share them. */
  readonly keep: number
  /** Where the joined layer goes. */
  readonly path: string
  readonly trees: ImageTrees
  readonly signal: AbortSignal
}

export async function joinedLayers(
  layers: readonly ImageLayer[],
  { keep, path, trees, signal }: Joining,
): Promise<readonly ImageLayer[]> {
  const bottom = layers.slice(0, keep - 1)
  let joined: DirectoryInode | undefined
  for (const layer of layers.slice(keep - 1)) {
    const tree = await readErofsTree(layer.path)
    joined = joined ? joinedTree(tree, joined) : tree
  }
  if (!joined || layers.length <= keep) return layers
  settleOver(joined, bottom.length === 0 ? undefined : await trees.read(bottom))
  const { digest, sizeBytes } = await writeTreeLayer(path, joined, signal)
  return [...bottom, { path, digest, sizeBytes }]
}

/** Deletions stay: they may concern what lies below both. */
function joinedTree(upper: DirectoryInode, lower: DirectoryInode): DirectoryInode {
  const joined = { ...newDirectory(upper), opaque: upper.opaque || lower.opaque }
  for (const [name, inode] of lower.children) joined.children.set(name, inode)
  for (const [name, inode] of upper.children) {
    const under = lower.children.get(name)
    if (inode.kind !== 'directory' || !under) joined.children.set(name, inode)
    else if (under.kind === 'directory') joined.children.set(name, joinedTree(inode, under))
    // A directory in the place of something else hides all that the layers below have there.
    else joined.children.set(name, { ...inode, opaque: true })
  }
  return joined
}
