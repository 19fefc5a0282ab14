import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { BlockFile } from './block-file.ts'

const MIB = 2 ** 20

test('long zeros are there and take no disk', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'file')
  const content = Buffer.alloc(9 * MIB + 5000)
  content.fill('a', 100, 200)
  content.fill('b', 3 * MIB - 7, 3 * MIB + 7)
  content.fill('c', 5 * MIB + 70_000, 5 * MIB + 70_001)
  {
    await using file = await BlockFile.create(path, 100 * MIB)
    for (let at = 0; at < content.length; at += 333_333) {
      await file.append(content.subarray(at, at + 333_333))
    }
    await file.finish(content.subarray(0, 4096))
    expect(Buffer.concat(await copies(file.read())).equals(content)).toBe(true)
  }
  expect((await readFile(path)).equals(content)).toBe(true)
  expect((await stat(path)).blocks * 512).toBeLessThan(MIB)
})

test('a file of zeros alone has its size', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'file')
  {
    await using file = await BlockFile.create(path, 100 * MIB)
    await file.append(new Uint8Array(2 * MIB + 1))
    await file.finish(new Uint8Array())
  }
  expect((await stat(path)).size).toBe(2 * MIB + 1)
})

/** Each piece is a view of one buffer. */
async function copies(pieces: AsyncIterable<Uint8Array>): Promise<Buffer[]> {
  return await Array.fromAsync(pieces, (piece) => Buffer.from(piece))
}
