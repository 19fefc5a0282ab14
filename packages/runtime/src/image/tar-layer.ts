/** Turns one tar stream into one EROFS layer, in one pass. */
import { ErofsImageFile, type FinishedImage } from './erofs/image-file.ts'
import { type DirectoryInode, type Inode, newDirectory, newWhiteout } from './erofs/inode.ts'
import { LayerTree } from './layer-tree.ts'
import { imageLimits } from './limits.ts'
import { LostAttributes } from './lost-attributes.ts'
import { TarError } from './tar/header.ts'
import { printable, readTar, type TarEntry } from './tar/reader.ts'
import { finishTree } from './tree-layer.ts'
import { settleOver, Whiteouts } from './whiteouts.ts'

export interface TarLayerOptions {
  /** Where the image file goes. Must not exist. */
  readonly path: string
  /** The merged view of the layers below; absent for the bottom layer, which also gets the mount points. */
  readonly below?: DirectoryInode
  /**
   * The archive tells every directory, and each deletion that hides something: nothing below needs to be known. `below` is
   * absent then.
   */
  readonly settled?: boolean
  /** Names that begin with `.wh.` are deletions. */
  readonly ociWhiteouts?: boolean
  readonly allRoot?: boolean
  /** Paths to leave out, given without slashes at either end. */
  readonly excludes?: (path: string) => boolean
  /** Times after this become the latest time before it, so that an image doesn't depend on when it was made. */
  readonly volatileAfterSeconds?: number
  readonly signal?: AbortSignal
  readonly onLog: (line: string) => void
}

export interface WrittenLayer extends FinishedImage {
  readonly root: DirectoryInode
}

export interface WrittenTarLayer extends WrittenLayer {
  /** What of the archive the layer can't have, a line each; the log has them too. */
  readonly warnings: readonly string[]
}

const NEVER = new AbortController().signal

/** Where every world mounts something; an image need not have them. */
const MOUNT_POINTS = { dev: 0o755, proc: 0o555, run: 0o755, sys: 0o555, tmp: 0o1777 } as const

/** Fails with a TarError for what can't or must not be stored. */
export async function writeTarLayer(
  chunks: AsyncIterable<Uint8Array>,
  options: TarLayerOptions,
): Promise<WrittenTarLayer> {
  await using file = await ErofsImageFile.create(options.path, imageLimits.layerBytesMax)
  const over = options.ociWhiteouts ? (options.below ?? newDirectory()) : undefined
  const tree = new LayerTree({ over })
  const whiteouts = new Whiteouts()
  const lost = new LostAttributes()
  for await (const entry of readTar(chunks)) {
    if (options.excludes?.(entry.path.replace(/^(\.?\/)+|\/+$/g, ''))) continue
    if (options.ociWhiteouts && whiteouts.take(entry.path, tree)) continue
    await put(entry, tree, file, options)
    lost.note(entry)
  }
  whiteouts.apply(tree)
  if (!options.settled) {
    settleOver(tree.root, options.below)
    if (!options.below) addMountPoints(tree.root)
  }
  if (options.volatileAfterSeconds !== undefined)
    settleTimes(tree.root, options.volatileAfterSeconds)
  const { warnings } = lost
  for (const line of warnings) options.onLog(line)
  return { ...(await finishTree(file, tree.root, options.signal ?? NEVER)), warnings }
}

async function put(
  entry: TarEntry,
  tree: LayerTree,
  file: ErofsImageFile,
  options: TarLayerOptions,
): Promise<void> {
  if (entry.type === 'link') {
    tree.link(entry.path, entry.linkPath)
    return
  }
  const inode = await toInode(entry, file)
  if (!inode) {
    options.onLog(`left out the device ${printable(entry.path)}: sandboxes have their own /dev`)
    return
  }
  if (options.allRoot) Object.assign(inode, { uid: 0, gid: 0 })
  tree.put(entry.path, inode)
}

/** Undefined for a device that is left out. Contents go to the file. */
export async function toInode(
  entry: Exclude<TarEntry, { type: 'link' }>,
  file: ErofsImageFile,
): Promise<Inode | undefined> {
  const { mode, uid, gid, mtimeSeconds, mtimeNanoseconds } = entry
  const metadata = { mode, uid, gid, mtimeSeconds, mtimeNanoseconds }
  switch (entry.type) {
    case 'directory':
      return newDirectory(metadata)
    case 'symlink':
      checkTarget(entry)
      return { kind: 'symlink', ...metadata, mode: 0o777, target: entry.linkPath }
    case 'fifo':
      return { kind: 'fifo', ...metadata }
    case 'characterDevice':
    case 'blockDevice':
      return device(entry)
    default:
      return { kind: 'file', ...metadata, ...(await file.appendContent(entry.content)) }
  }
}

function device(entry: TarEntry): Inode | undefined {
  const isZero = entry.deviceMajor === 0 && entry.deviceMinor === 0
  if (entry.type === 'characterDevice' && isZero) return newWhiteout()
  if (/^(\.\/)*dev\//.test(entry.path)) return undefined
  throw new TarError(`device outside /dev: ${printable(entry.path)}`)
}

function checkTarget(entry: TarEntry): void {
  const length = entry.linkPath.length
  if (length > 0 && length < imageLimits.pathBytesMax && !entry.linkPath.includes('\0')) return
  throw new TarError(`symbolic link with a bad target: ${printable(entry.path)}`)
}

/** At the bottom of an image. */
export function addMountPoints(root: DirectoryInode): void {
  for (const [name, mode] of Object.entries(MOUNT_POINTS)) {
    if (!root.children.has(name)) root.children.set(name, newDirectory({ mode }))
  }
}

function settleTimes(root: DirectoryInode, afterSeconds: number): void {
  const all = new Set<Inode>()
  collect(root, all)
  let latest = 0
  for (const inode of all) {
    if (inode.mtimeSeconds <= afterSeconds) latest = Math.max(latest, inode.mtimeSeconds)
  }
  for (const inode of all) {
    if (inode.mtimeSeconds > afterSeconds) {
      inode.mtimeSeconds = latest
      inode.mtimeNanoseconds = 0
    }
  }
}

function collect(inode: Inode, into: Set<Inode>): void {
  into.add(inode)
  if (inode.kind !== 'directory') return
  for (const child of inode.children.values()) collect(child, into)
}
