/**
 * The content of a directory: blocks that each hold an array of entries and then their names, sorted by byte over all blocks.
 */
import { BLOCK_BYTES, FILE_TYPES } from './format.ts'
import type { Inode } from './inode.ts'

const DIRENT_BYTES = 12

export interface DirectoryEntry {
  readonly name: string
  readonly inode: Inode
}

/** Entries cut into blocks, before inode numbers are known. */
export interface DirectoryPlan {
  readonly blocks: readonly (readonly DirectoryEntry[])[]
  readonly sizeBytes: number
}

export function planDirectory(entries: readonly DirectoryEntry[]): DirectoryPlan {
  const sorted = [...entries].sort((a, b) => (a.name < b.name ? -1 : 1))
  const blocks: DirectoryEntry[][] = []
  let used = BLOCK_BYTES
  for (const entry of sorted) {
    const need = DIRENT_BYTES + entry.name.length
    if (used + need > BLOCK_BYTES) {
      blocks.push([])
      used = 0
    }
    blocks.at(-1)?.push(entry)
    used += need
  }
  return { blocks, sizeBytes: (blocks.length - 1) * BLOCK_BYTES + used }
}

/** All blocks in a row; only the last may be shorter than a block. */
export function encodeDirectory(plan: DirectoryPlan, nidOf: (inode: Inode) => number): Buffer {
  const out = Buffer.alloc(plan.sizeBytes)
  plan.blocks.forEach((entries, index) => {
    const block = out.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES)
    let nameOffset = entries.length * DIRENT_BYTES
    entries.forEach((entry, position) => {
      const at = position * DIRENT_BYTES
      block.writeBigUInt64LE(BigInt(nidOf(entry.inode)), at)
      block.writeUInt16LE(nameOffset, at + 8)
      block.writeUInt8(FILE_TYPES[entry.inode.kind], at + 10)
      nameOffset += block.write(entry.name, nameOffset, 'latin1')
    })
  })
  return out
}

/** Names and inode numbers of an encoded directory, without `.` and `..`; undefined when it is damaged. */
export function decodeDirectory(content: Buffer): { name: string; nid: number }[] | undefined {
  const found: { name: string; nid: number }[] = []
  for (let start = 0; start < content.length; start += BLOCK_BYTES) {
    const block = content.subarray(start, start + BLOCK_BYTES)
    if (block.length < DIRENT_BYTES) return undefined
    const namesStart = block.readUInt16LE(8)
    if (namesStart % DIRENT_BYTES !== 0 || namesStart > block.length) return undefined
    for (let at = 0; at < namesStart; at += DIRENT_BYTES) {
      const nameStart = block.readUInt16LE(at + 8)
      const isLast = at + DIRENT_BYTES === namesStart
      const nameEnd = isLast ? endOfNames(block, nameStart) : block.readUInt16LE(at + 20)
      const name = block.toString('latin1', nameStart, nameEnd)
      if (name === '' || name.includes('/')) return undefined
      if (name === '.' || name === '..') continue
      found.push({ name, nid: Number(block.readBigUInt64LE(at)) })
    }
  }
  return found
}

/** The last name of a block ends with the block, or at the zeros that fill it. */
function endOfNames(block: Buffer, nameStart: number): number {
  const end = block.indexOf(0, nameStart)
  return end < 0 ? block.length : end
}
