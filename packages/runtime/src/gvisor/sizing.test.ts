import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sizesOf } from './sizing.ts'

const MIB = 2 ** 20
const rest = { cpus: 1, pidsMax: 128, nofileMax: 1024 }

describe('sizes of a sandbox', () => {
  test('1 GiB of memory with 1 GiB of disk', () => {
    const sizes = sizesOf({ memoryBytes: 1024 * MIB, diskBytes: 1024 * MIB, ...rest })
    expect(sizes).toEqual({
      upperBytes: 1024 * MIB,
      upperInodes: 65_536,
      gradeUpperBytes: 256 * MIB,
      gradeUpperInodes: 16_384,
      shmBytes: 64 * MIB,
      cgroupMemoryBytes: (1024 + 1024 + 256 + 128 + 240 + 32 + 40) * MIB,
    })
  })

  test('a small sandbox keeps room for its runtime', () => {
    const sizes = sizesOf({ memoryBytes: 32 * MIB, diskBytes: 16 * MIB, ...rest })
    expect(sizes.upperInodes).toBe(4_096)
    expect(sizes.cgroupMemoryBytes).toBe((32 + 16 + 16 + 16 + 24 + 32 + 40) * MIB)
  })

  test('full file systems and the promised memory together always leave 40 MiB to the runtime', () => {
    const size = fc.integer({ min: 1, max: 64 * 1024 }).map((mib) => mib * MIB)
    fc.assert(
      fc.property(size, size, (memoryBytes, diskBytes) => {
        const sizes = sizesOf({ memoryBytes, diskBytes, ...rest })
        const tmpfs = sizes.upperBytes + sizes.gradeUpperBytes + 2 * sizes.shmBytes
        const inodes = 3072 * (sizes.upperInodes + sizes.gradeUpperInodes)
        const processes = 128 * 256 * 1024
        const left = sizes.cgroupMemoryBytes - tmpfs - inodes - processes - memoryBytes
        // Sizes are rounded to pages one by one.
        expect(left).toBeGreaterThanOrEqual(40 * MIB - 4 * 4096)
        expect(sizes.cgroupMemoryBytes % 4096).toBe(0)
      }),
    )
  })
})
