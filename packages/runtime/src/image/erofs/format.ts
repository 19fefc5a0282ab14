/**
 * The parts of the EROFS on-disk format that a layer uses: 4 KiB blocks, extended inodes, plain data for files, and
 * directories and short symlinks inlined behind their inode. No compression, no xattrs, no chunks: gVisor reads nothing else,
 * and it can't execute a file whose tail is inlined.
 */
export const BLOCK_BYTES = 4096
export const INODE_BYTES = 64
/** Inode numbers count slots of this size from the start of the metadata area. */
export const SLOT_BYTES = 32

export const FILE_TYPES = { file: 1, directory: 2, whiteout: 3, fifo: 5, symlink: 7 } as const
const MODE_BITS = {
  file: 0o100000,
  directory: 0o040000,
  whiteout: 0o020000,
  fifo: 0o010000,
  symlink: 0o120000,
} as const

const EXTENDED = 1
const LAYOUTS = { plain: 0, inline: 2 } as const
const SUPERBLOCK_OFFSET = 1024
const MAGIC = 0xe0f5e1e2
const COMPAT_CHECKSUM = 1
const COMPAT_MTIME = 2

export interface InodeRecord {
  readonly kind: keyof typeof FILE_TYPES
  readonly layout: keyof typeof LAYOUTS
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtimeSeconds: number
  readonly mtimeNanoseconds: number
  readonly sizeBytes: number
  /** First block of the data outside the inode. */
  readonly block: number
  readonly number: number
  readonly links: number
}

export function encodeInode(record: InodeRecord): Buffer {
  const out = Buffer.alloc(INODE_BYTES)
  out.writeUInt16LE(EXTENDED | (LAYOUTS[record.layout] << 1), 0)
  out.writeUInt16LE(MODE_BITS[record.kind] | record.mode, 4)
  out.writeBigUInt64LE(BigInt(record.sizeBytes), 8)
  out.writeUInt32LE(record.block, 16)
  out.writeUInt32LE(record.number, 20)
  out.writeUInt32LE(record.uid, 24)
  out.writeUInt32LE(record.gid, 28)
  out.writeBigUInt64LE(BigInt(record.mtimeSeconds), 32)
  out.writeUInt32LE(record.mtimeNanoseconds, 40)
  out.writeUInt32LE(record.links, 44)
  return out
}

const KINDS = Object.entries(MODE_BITS) as [InodeRecord['kind'], number][]
const FORMAT_BITS = 0o170000

/** An inode as `encodeInode` wrote it; undefined for any other bytes. */
export function decodeInode(bytes: Buffer): InodeRecord | undefined {
  if (bytes.length < INODE_BYTES) return undefined
  const format = bytes.readUInt16LE(0)
  const mode = bytes.readUInt16LE(4)
  const kind = KINDS.find(([, bits]) => bits === (mode & FORMAT_BITS))?.[0]
  const isInline = format === (EXTENDED | (LAYOUTS.inline << 1))
  const isPlain = format === (EXTENDED | (LAYOUTS.plain << 1))
  if (kind === undefined || !(isInline || isPlain)) return undefined
  return {
    kind,
    layout: isInline ? 'inline' : 'plain',
    mode: mode & 0o7777,
    sizeBytes: Number(bytes.readBigUInt64LE(8)),
    block: bytes.readUInt32LE(16),
    number: bytes.readUInt32LE(20),
    uid: bytes.readUInt32LE(24),
    gid: bytes.readUInt32LE(28),
    mtimeSeconds: Number(bytes.readBigUInt64LE(32)),
    mtimeNanoseconds: bytes.readUInt32LE(40),
    links: bytes.readUInt32LE(44),
  }
}

export interface Superblock {
  readonly rootNid: number
  readonly inodes: number
  readonly blocks: number
  readonly metadataBlock: number
}

/** The first block of an image. Time, name and UUID stay zero, so equal trees give equal images. */
export function encodeFirstBlock(superblock: Superblock): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES)
  const out = block.subarray(SUPERBLOCK_OFFSET)
  out.writeUInt32LE(MAGIC, 0)
  out.writeUInt32LE(COMPAT_CHECKSUM | COMPAT_MTIME, 8)
  out.writeUInt8(Math.log2(BLOCK_BYTES), 12)
  out.writeUInt16LE(superblock.rootNid, 14)
  out.writeBigUInt64LE(BigInt(superblock.inodes), 16)
  out.writeUInt32LE(superblock.blocks, 36)
  out.writeUInt32LE(superblock.metadataBlock, 40)
  out.writeUInt32LE(crc32c(out), 4)
  return block
}

/** The superblock that `encodeFirstBlock` wrote; undefined for any other bytes. */
export function decodeFirstBlock(block: Buffer): Superblock | undefined {
  if (block.length < BLOCK_BYTES) return undefined
  const found = Buffer.from(block.subarray(SUPERBLOCK_OFFSET))
  const checksum = found.readUInt32LE(4)
  found.writeUInt32LE(0, 4)
  if (found.readUInt32LE(0) !== MAGIC || crc32c(found) !== checksum) return undefined
  return {
    rootNid: found.readUInt16LE(14),
    inodes: Number(found.readBigUInt64LE(16)),
    blocks: found.readUInt32LE(36),
    metadataBlock: found.readUInt32LE(40),
  }
}

/** CRC-32C as EROFS counts it: all ones to begin with, no inversion at the end. */
function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0)
  }
  return crc >>> 0
}
