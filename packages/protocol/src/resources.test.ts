import { expect, test } from 'vitest'
import { completeResources, diskMediumOf, RESOURCES_DEFAULT } from './resources.ts'

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
  [256, 192, 'memory'],
  [256, 193, 'disk'],
  [1_024, undefined, 'memory'],
  [96, 51_200, 'disk'],
] as const)('of a memory of %d MiB a disk of %s MiB is in %s', (memoryMib, diskMib, medium) => {
  const { memory, disk } = sized(memoryMib, diskMib)
  expect(diskMediumOf({ memoryBytes: memory.limit, diskBytes: disk })).toBe(medium)
})

test('what is too small is said as people say it', () => {
  expect(() => sized(1)).toThrow(/a limit of 1 MiB is below the least, 96MiB/)
  expect(() => sized(256, 0)).toThrow(/resources.disk: below the least, 1MiB/)
})
