/**
 * Reads the tree of a layer back from its file: names and metadata. Contents stay where they are; `readContent` opens one. It
 * knows what `image-file.ts` writes and nothing else of EROFS.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { imageLimits } from '../limits.ts'
import { decodeDirectory } from './directory-blocks.ts'
import { BLOCK_BYTES, decodeFirstBlock, decodeInode, INODE_BYTES, SLOT_BYTES } from './format.ts'
import { type DirectoryInode, type FileInode, type Inode, newDirectory } from './inode.ts'

const PIECE_BYTES = 1024 * 1024

/** A layer's file is not what was written. */
export class LayerDamaged extends Error {
  override readonly name = 'LayerDamaged'

  constructor(path: string) {
    super(`the layer ${path} is damaged`)
  }
}

export async function readErofsTree(path: string): Promise<DirectoryInode> {
  await using file = await open(path)
  const reader = await TreeReader.open(file, path)
  return await reader.root()
}

/** The bytes of a file that `readErofsTree` found. */
export async function* readContent(file: FileInode): AsyncGenerator<Uint8Array> {
  if (file.layer === undefined) throw new Error('the content of a file that is being written')
  if (file.sizeBytes === 0) return
  await using handle = await open(file.layer)
  const start = file.block * BLOCK_BYTES
  for (let done = 0; done < file.sizeBytes; ) {
    const length = Math.min(PIECE_BYTES, file.sizeBytes - done)
    yield await readAt(handle, { path: file.layer, at: start + done, length })
    done += length
  }
}

class TreeReader {
  readonly #file: FileHandle
  readonly #path: string
  readonly #metadata: Buffer
  readonly #rootNid: number
  readonly #known = new Map<number, Inode>()

  private constructor(file: FileHandle, path: string, metadata: Buffer, rootNid: number) {
    this.#file = file
    this.#path = path
    this.#metadata = metadata
    this.#rootNid = rootNid
  }

  static async open(file: FileHandle, path: string): Promise<TreeReader> {
    const first = decodeFirstBlock(await readAt(file, { path, at: 0, length: BLOCK_BYTES }))
    if (!first) throw new LayerDamaged(path)
    const at = first.metadataBlock * BLOCK_BYTES
    const length = first.blocks * BLOCK_BYTES - at
    if (length <= 0 || length > imageLimits.layerMetadataBytesMax) throw new LayerDamaged(path)
    const metadata = await readAt(file, { path, at, length })
    return new TreeReader(file, path, metadata, first.rootNid)
  }

  async root(): Promise<DirectoryInode> {
    const root = this.#decode(this.#rootNid)
    if (root.inode.kind !== 'directory') throw this.#damaged()
    const left = [{ directory: root.inode, ...root }]
    for (let next = left.pop(); next; next = left.pop()) {
      const entries = decodeDirectory(await this.#payload(next))
      if (!entries) throw this.#damaged()
      for (const { name, nid } of entries) {
        const known = this.#known.get(nid)
        if (known?.kind === 'directory') throw this.#damaged()
        const child = known ? { inode: known } : this.#decode(nid)
        next.directory.children.set(name, await this.#complete(child))
        if (child.inode.kind === 'directory' && 'record' in child) {
          left.push({ directory: child.inode, ...child })
        }
      }
    }
    return root.inode
  }

  /** A symbolic link's target lies behind its inode. */
  async #complete(found: { inode: Inode } | Found): Promise<Inode> {
    if (found.inode.kind !== 'symlink' || !('record' in found)) return found.inode
    const target = (await this.#payload(found)).toString('latin1')
    const inode = { ...found.inode, target }
    this.#known.set(found.nid, inode)
    return inode
  }

  #decode(nid: number): Found {
    const at = nid * SLOT_BYTES
    const record = decodeInode(this.#metadata.subarray(at, at + INODE_BYTES))
    if (!record) throw this.#damaged()
    const { mode, uid, gid, mtimeSeconds, mtimeNanoseconds } = record
    const metadata = { mode, uid, gid, mtimeSeconds, mtimeNanoseconds }
    let inode: Inode
    if (record.kind === 'directory') inode = newDirectory(metadata)
    else if (record.kind === 'symlink') inode = { kind: 'symlink', ...metadata, target: '' }
    else if (record.kind !== 'file') inode = { kind: record.kind, ...metadata }
    else {
      const { block, sizeBytes } = record
      inode = { kind: 'file', ...metadata, block, sizeBytes, layer: this.#path }
    }
    this.#known.set(nid, inode)
    return { inode, nid, record }
  }

  /** What lies in blocks of its own, and then what lies behind the inode. */
  async #payload({ nid, record }: Pick<Found, 'nid' | 'record'>): Promise<Buffer> {
    const { sizeBytes, layout, block } = record
    if (sizeBytes > imageLimits.layerMetadataBytesMax) throw this.#damaged()
    const inlineBytes = layout === 'inline' ? sizeBytes % BLOCK_BYTES : 0
    const outsideBytes = sizeBytes - inlineBytes
    const start = nid * SLOT_BYTES + INODE_BYTES
    const inline = this.#metadata.subarray(start, start + inlineBytes)
    if (outsideBytes === 0) return inline
    const place = { path: this.#path, at: block * BLOCK_BYTES, length: outsideBytes }
    return Buffer.concat([await readAt(this.#file, place), inline])
  }

  #damaged(): LayerDamaged {
    return new LayerDamaged(this.#path)
  }
}

interface Found {
  readonly inode: Inode
  readonly nid: number
  readonly record: NonNullable<ReturnType<typeof decodeInode>>
}

async function readAt(
  file: FileHandle,
  { path, at, length }: { readonly path: string; readonly at: number; readonly length: number },
): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length)
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, at + done)
    if (bytesRead === 0) throw new LayerDamaged(path)
    done += bytesRead
  }
  return bytes
}
