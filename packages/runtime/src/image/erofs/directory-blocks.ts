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
