import { mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { keptSecret } from './kept-secret.ts'

test('a secret is made once, and is for its owner alone', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'key')
  const made = await keptSecret(path, () => 'a'.repeat(32))
  expect(await keptSecret(path, () => 'b'.repeat(32))).toBe(made)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test('what is no file in its place is named, and stays', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'key')
  await mkdir(path)
  await writeFile(join(path, 'note'), '')
  await expect(keptSecret(path, () => 'a'.repeat(32))).rejects.toMatchObject({
    code: 'invalid_request',
    message: `${path} can't be read: it is a directory`,
  })
  expect((await stat(join(path, 'note'))).isFile()).toBe(true)
})
