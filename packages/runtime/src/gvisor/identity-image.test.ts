import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { BLOCK_BYTES } from '../image/erofs/format.ts'
import { makeIdentityImage } from './identity-image.ts'

test('two differ in the contents of their files alone', async () => {
  await using directory = await temporaryDirectory()
  const images: Buffer[] = []
  for (const name of ['one', 'two']) {
    const path = join(directory.path, name)
    await makeIdentityImage(path, 'drawn')
    images.push(await readFile(path))
  }
  const [one = [], two = []] = images.map(blocks)
  expect(one.map((block, index) => block !== two[index])).toEqual([false, true, true, false])
  const [, machineId, seed] = one.map((block) => block.replace(/\0+$/, ''))
  expect(machineId).toMatch(/^[0-9a-f]{32}\n$/)
  expect(seed).toMatch(/^[0-9a-f]{64}\n$/)
})

test('one that is kept is the same', async () => {
  await using directory = await temporaryDirectory()
  const [kept = '', path = ''] = ['kept', 'again'].map((name) => join(directory.path, name))
  await makeIdentityImage(kept, 'drawn')
  await makeIdentityImage(path, { kept })
  expect(await readFile(path)).toEqual(await readFile(kept))
})

function blocks(image: Buffer): string[] {
  const count = image.length / BLOCK_BYTES
  return Array.from({ length: count }, (_, index) =>
    image.toString('latin1', index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES),
  )
}
