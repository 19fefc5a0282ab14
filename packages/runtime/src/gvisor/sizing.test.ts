import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { promisedDiskBytes, sizesOf } from './sizing.ts'

const MIB = 2 ** 20
const rest = { cpus: 1, pidsMax: 128, nofileMax: 1024 }

describe('sizes of a sandbox', () => {
  test('1 GiB of memory with 512 MiB of disk', () => {
    const sizes = sizesOf({ memoryBytes: 1024 * MIB, diskBytes: 512 * MIB, ...rest })
    expect(sizes).toEqual({
      upperBytes: 512 * MIB,
      upperInodes: 32_768,
      gradeUpperBytes: 128 * MIB,
      gradeUpperInodes: 8_192,
      shmBytes: 64 * MIB,
      cgroupMemoryBytes: (1024 + 40) * MIB,
      disks: [],
    })
    expect(promisedDiskBytes({ memoryBytes: 1024 * MIB, diskBytes: 512 * MIB })).toBe(0)
  })

  test.each([
    [1024, 51_200, 6_400],
    [1024, 800, 128],
    [8_192, 6_145, 1_024],
  ])('%d MiB of memory with %d MiB on the disk', (memory, disk, grade) => {
    const limits = { memoryBytes: memory * MIB, diskBytes: disk * MIB }
    expect(sizesOf(limits)).toMatchObject({
      gradeUpperBytes: Math.min(disk, memory / 8) * MIB,
      cgroupMemoryBytes: (memory + 64) * MIB,
      disks: [
        { world: 'main', bytes: disk * MIB },
        { world: 'grade', bytes: grade * MIB },
      ],
    })
    expect(promisedDiskBytes(limits)).toBe((disk + grade) * MIB)
  })

  test('full file systems fit into the memory limit, and the runtime has its own', () => {
    const size = fc.integer({ min: 1, max: 64 * 1024 }).map((mib) => mib * MIB)
    const share = fc.double({ min: 0.01, max: 0.75, noNaN: true })
    fc.assert(
      fc.property(size, share, (memoryBytes, disk) => {
        const sizes = sizesOf({ memoryBytes, diskBytes: memoryBytes * disk, ...rest })
        const tmpfs = sizes.upperBytes + sizes.gradeUpperBytes + 2 * sizes.shmBytes
        // Sizes are rounded to pages one by one.
        expect(sizes.cgroupMemoryBytes - tmpfs).toBeGreaterThanOrEqual(40 * MIB - 4 * 4096)
        expect(sizes.cgroupMemoryBytes % 4096).toBe(0)
      }),
    )
  })
})
