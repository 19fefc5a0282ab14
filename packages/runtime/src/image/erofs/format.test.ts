import { expect, test } from 'vitest'
import { encodeFirstBlock, encodeInode } from './format.ts'

test('an inode keeps set-user-id, large owners and times', () => {
  const bytes = encodeInode({
    kind: 'file',
    layout: 'plain',
    mode: 0o6755,
    uid: 4_000_000_000,
    gid: 70_000,
    mtimeSeconds: 5_000_000_000,
    mtimeNanoseconds: 999_999_999,
    sizeBytes: 2 ** 40,
    block: 7,
    number: 3,
    links: 2,
  })
  expect(bytes.readUInt16LE(4)).toBe(0o106755)
  expect(bytes.readBigUInt64LE(8)).toBe(2n ** 40n)
  expect(bytes.readUInt32LE(24)).toBe(4_000_000_000)
  expect(bytes.readBigUInt64LE(32)).toBe(5_000_000_000n)
  expect(bytes.readUInt32LE(40)).toBe(999_999_999)
})

test('the superblock has a checksum and nothing that depends on when it was made', () => {
  const of = (blocks: number): Buffer =>
    encodeFirstBlock({ rootNid: 0, inodes: 1, blocks, metadataBlock: 1 })
  expect(of(2)).toEqual(of(2))
  expect(of(2).readUInt32LE(1024)).toBe(0xe0f5e1e2)
  expect(of(2).readUInt32LE(1028)).not.toBe(of(3).readUInt32LE(1028))
})
