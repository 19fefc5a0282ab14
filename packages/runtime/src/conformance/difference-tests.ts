import { expect } from 'vitest'
import type { Sandbox } from '../driver.ts'
import { readTar } from '../image/tar/reader.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, specFor } from './harness.ts'

const MIB = 2 ** 20
/** Parents of what is changed: a driver may tell them, or not. */
const PARENTS = ['etc/', 'home/']

export function differenceTests(harness: DriverHarness, driverTest: DriverTest): void {
  for (const [medium, diskBytes] of [
    ['memory', 32 * MIB],
    ['the disk', 256 * MIB],
  ] as const) {
    driverTest(`a world in ${medium} tells what it changed, running and ended`, async (opened) => {
      const sandbox = await opened.driver.create(specFor(harness, { limits: { diskBytes } }))
      expect(await difference(sandbox)).toEqual([])
      await change(sandbox)
      const expected = [
        'etc/new file 3',
        'home/d directory 0',
        'home/d/a file 1',
        'root characterDevice 0',
      ]
      expect(await difference(sandbox)).toEqual(expected)
      await sandbox.guest.endWorld('main')
      expect(await difference(sandbox)).toEqual(expected)
    })
  }

  driverTest('what is excluded is not told', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    await change(sandbox)
    expect(await difference(sandbox, ['/home/d', '/root/', '/nowhere'])).toEqual([
      'etc/new file 3',
      'home/d directory 0',
    ])
    await expect(difference(sandbox, ['/'])).rejects.toMatchObject({ code: 'invalid' })
    await expect(difference(sandbox, ['etc'])).rejects.toMatchObject({ code: 'invalid' })
  })
}

async function change({ guest }: Sandbox): Promise<void> {
  await guest.files.write('main', '/etc/new', Buffer.from('new'))
  await guest.files.makeDirectory('main', '/home/d')
  await guest.files.write('main', '/home/d/b', Buffer.from('b'))
  await guest.files.rename('main', '/home/d/b', '/home/d/a')
  await guest.files.write('main', '/passing', Buffer.from('gone soon'))
  await guest.files.remove('main', '/passing')
  await guest.files.remove('main', '/root', { recursive: true })
}

async function difference({ guest }: Sandbox, exclude: readonly string[] = []) {
  const stream = guest.tar.difference('main', { exclude })
  const lines: string[] = []
  let entries = 0
  for await (const { path, type, sizeBytes } of readTar(stream)) {
    entries += 1
    if (PARENTS.includes(path)) continue
    lines.push(`${path.replace(/\/$/, '')} ${type} ${sizeBytes}`)
  }
  expect(await stream.result).toEqual({ entries })
  return lines.sort()
}
