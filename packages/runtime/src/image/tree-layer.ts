/** Writes a tree that was put together in memory, contents of other layers included, as a layer of its own. */
import { ErofsImageFile } from './erofs/image-file.ts'
import type { DirectoryInode, FileInode, Inode } from './erofs/inode.ts'
import { readContent } from './erofs/read-tree.ts'
import { imageLimits } from './limits.ts'
import type { WrittenLayer } from './tar-layer.ts'

/** Opaque marks must have been expanded. The tree is changed: its contents lie in the new layer afterwards. */
export async function finishTree(
  file: ErofsImageFile,
  root: DirectoryInode,
  signal: AbortSignal,
): Promise<WrittenLayer> {
  const brought = new Map<FileInode, FileInode>()
  await bringContents(root, { file, brought, signal })
  return { ...(await file.finish(root)), root }
}

export async function writeTreeLayer(
  path: string,
  root: DirectoryInode,
  signal: AbortSignal,
): Promise<WrittenLayer> {
  await using file = await ErofsImageFile.create(path, imageLimits.layerBytesMax)
  return await finishTree(file, root, signal)
}

interface Bringing {
  readonly file: ErofsImageFile
  /** Names of one file stay names of one file. */
  readonly brought: Map<FileInode, FileInode>
  readonly signal: AbortSignal
}

async function bringContents(directory: DirectoryInode, to: Bringing): Promise<void> {
  for (const [name, child] of directory.children) {
    if (child.kind === 'directory') await bringContents(child, to)
    else if (child.kind === 'file' && child.layer !== undefined) {
      directory.children.set(name, await bring(child, to))
    }
  }
}

async function bring(inode: FileInode, { file, brought, signal }: Bringing): Promise<Inode> {
  const known = brought.get(inode)
  if (known) return known
  signal.throwIfAborted()
  const { layer: _, ...metadata } = inode
  const copied = { ...metadata, ...(await file.appendContent(readContent(inode))) }
  brought.set(inode, copied)
  return copied
}
