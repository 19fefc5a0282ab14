/**
 * Writes one EROFS image: contents first, as they stream in, then directories and inodes, and the superblock last. So a tar
 * becomes a layer in one pass in constant memory (plus its metadata), without a file of it ever lying on this machine's own
 * file system; and an image that was cut off has no superblock.
 */
import { createHash } from 'node:crypto'
import { BlockFile } from './block-file.ts'
import { type DirectoryPlan, encodeDirectory, planDirectory } from './directory-blocks.ts'
import {
  BLOCK_BYTES,
  encodeFirstBlock,
  encodeInode,
  INODE_BYTES,
  type InodeRecord,
  SLOT_BYTES,
} from './format.ts'
import type { DirectoryInode, Inode } from './inode.ts'

export interface Content {
  readonly block: number
  readonly sizeBytes: number
}

export interface FinishedImage {
  /** `sha256:…` of the file. */
  readonly digest: string
  readonly sizeBytes: number
  readonly inodes: number
}

export class ErofsImageFile implements AsyncDisposable {
  readonly #file: BlockFile

  private constructor(file: BlockFile) {
    this.#file = file
  }

  static async create(path: string, sizeBytesMax: number): Promise<ErofsImageFile> {
    const image = new ErofsImageFile(await BlockFile.create(path, sizeBytesMax))
    await image.#file.padTo(BLOCK_BYTES)
    return image
  }

  /** Stores the content of one file. One at a time. */
  async appendContent(chunks: AsyncIterable<Uint8Array>): Promise<Content> {
    const start = this.#file.position
    for await (const chunk of chunks) await this.#file.append(chunk)
    const sizeBytes = this.#file.position - start
    await this.#file.padToBlock()
    return { block: sizeBytes === 0 ? 0 : start / BLOCK_BYTES, sizeBytes }
  }

  /** Writes the tree, makes the file durable and names it. Opaque marks must have been expanded. */
  async finish(root: DirectoryInode): Promise<FinishedImage> {
    const file = this.#file
    const placed = place(root)
    for (const item of placed.items) {
      const outside = outsideBytes(item)
      if (outside === 0) continue
      item.block = file.position / BLOCK_BYTES
      await file.append(payload(item, placed.nidOf).subarray(0, outside))
      await file.padToBlock()
    }
    const metadataStart = file.position
    for (const item of placed.items) {
      await file.padTo(metadataStart + item.offset)
      await file.append(encodeInode(record(item)))
      if (item.inlineBytes > 0) {
        await file.append(payload(item, placed.nidOf).subarray(outsideBytes(item)))
      }
    }
    await file.padToBlock()
    const sizeBytes = file.position
    await file.finish(
      encodeFirstBlock({
        rootNid: placed.nidOf(root),
        inodes: placed.items.length,
        blocks: sizeBytes / BLOCK_BYTES,
        metadataBlock: metadataStart / BLOCK_BYTES,
      }),
    )
    return { digest: await this.#digest(), sizeBytes, inodes: placed.items.length }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file[Symbol.asyncDispose]()
  }

  async #digest(): Promise<string> {
    const hash = createHash('sha256')
    for await (const chunk of this.#file.read()) hash.update(chunk)
    return `sha256:${hash.digest('hex')}`
  }
}

/** An inode with its place in the metadata area. */
interface Placed {
  readonly inode: Inode
  readonly number: number
  readonly plan: DirectoryPlan | undefined
  /** What lies in blocks of its own or behind the inode; a file's content counts as already written. */
  readonly payloadBytes: number
  readonly inlineBytes: number
  /** Bytes from the start of the metadata area. */
  offset: number
  block: number
  links: number
}

interface Placement {
  readonly items: readonly Placed[]
  readonly nidOf: (inode: Inode) => number
}

/** Gives every inode its place, the root first: its number must fit into 16 bits. */
function place(root: DirectoryInode): Placement {
  const placed = new Map<Inode, Placed>()
  const visit = (inode: Inode, parent: DirectoryInode): void => {
    const known = placed.get(inode)
    if (known) {
      known.links += 1
      return
    }
    placed.set(inode, placedInode(inode, parent, placed.size + 1))
    if (inode.kind !== 'directory') return
    for (const name of [...inode.children.keys()].sort()) {
      const child = inode.children.get(name)
      if (child) visit(child, inode)
    }
  }
  visit(root, root)
  let cursor = 0
  for (const item of placed.values()) {
    const need = INODE_BYTES + item.inlineBytes
    const left = BLOCK_BYTES - (cursor % BLOCK_BYTES)
    if (need > left) cursor += left
    item.offset = cursor
    cursor = Math.ceil((cursor + need) / SLOT_BYTES) * SLOT_BYTES
  }
  const nidOf = (inode: Inode): number => {
    const item = placed.get(inode)
    if (!item) throw new Error('an inode outside the tree was asked for')
    return item.offset / SLOT_BYTES
  }
  return { items: [...placed.values()], nidOf }
}

function placedInode(inode: Inode, parent: DirectoryInode, number: number): Placed {
  const plan = inode.kind === 'directory' ? planOf(inode, parent) : undefined
  const payloadBytes = plan?.sizeBytes ?? (inode.kind === 'symlink' ? inode.target.length : 0)
  const tail = payloadBytes % BLOCK_BYTES
  const inlineBytes = tail + INODE_BYTES <= BLOCK_BYTES ? tail : 0
  const block = inode.kind === 'file' ? inode.block : 0
  const subdirectories =
    inode.kind === 'directory'
      ? [...inode.children.values()].filter((child) => child.kind === 'directory').length
      : 0
  const links = inode.kind === 'directory' ? 2 + subdirectories : 1
  return { inode, number, plan, payloadBytes, inlineBytes, offset: 0, block, links }
}

function planOf(inode: DirectoryInode, parent: DirectoryInode): DirectoryPlan {
  const entries = [...inode.children].map(([name, child]) => ({ name, inode: child }))
  return planDirectory([{ name: '.', inode }, { name: '..', inode: parent }, ...entries])
}

function outsideBytes(item: Placed): number {
  return item.payloadBytes - item.inlineBytes
}

function payload(item: Placed, nidOf: (inode: Inode) => number): Buffer {
  if (item.plan) return encodeDirectory(item.plan, nidOf)
  return Buffer.from(item.inode.kind === 'symlink' ? item.inode.target : '', 'latin1')
}

function record(item: Placed): InodeRecord {
  const { inode } = item
  return {
    kind: inode.kind,
    layout: item.inlineBytes > 0 ? 'inline' : 'plain',
    mode: inode.mode,
    uid: inode.uid,
    gid: inode.gid,
    mtimeSeconds: inode.mtimeSeconds,
    mtimeNanoseconds: inode.mtimeNanoseconds,
    sizeBytes: inode.kind === 'file' ? inode.sizeBytes : item.payloadBytes,
    block: item.block,
    number: item.number,
    links: item.links,
  }
}
