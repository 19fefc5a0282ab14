import { expect, test } from 'vitest'
import { completeResources, RESOURCES_DEFAULT } from './resources.ts'

const MIB = 2 ** 20

const sized = (memoryMib: number, diskMib?: number) =>
  completeResources({
    memory: { request: memoryMib * MIB, limit: memoryMib * MIB },
    ...(diskMib === undefined ? {} : { disk: diskMib * MIB }),
  })

test('nothing asked for is the default', () => {
  expect(completeResources(undefined)).toEqual(RESOURCES_DEFAULT)
})

test('a disk takes half of a small memory limit', () => {
  expect(sized(256).disk).toBe(128 * MIB)
  expect(sized(8_192).disk).toBe(512 * MIB)
})

test.each([
  [256, 1_024, 'Raise the memory to 1366MiB, or lower the disk to 192MiB'],
  [1_001, 2_048, 'Raise the memory to 2731MiB, or lower the disk to 750MiB'],
])('a disk too large for its memory of %d MiB says both ways out', (memory, disk, ways) => {
  expect(() => sized(memory, disk)).toThrow(ways)
  const [, memoryMib, diskMib] = /memory to (\d+)MiB, .* disk to (\d+)MiB/.exec(ways) ?? []
  expect(sized(Number(memoryMib), disk).disk).toBe(disk * MIB)
  expect(sized(memory, Number(diskMib)).memory.limit).toBe(memory * MIB)
})

test('sizes are said as people say them', () => {
  expect(() => sized(256, 1_024)).toThrow(/1 GiB does not fit in a memory limit of 256 MiB/)
  expect(() => sized(1)).toThrow(/a limit of 1 MiB is below the least, 96MiB/)
})
