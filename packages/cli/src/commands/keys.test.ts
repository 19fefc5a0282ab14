import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { afterEach, expect, test, vi } from 'vitest'
import { createKeyCommand } from './keys.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

test('a key that could not be made leaves no file, which would be taken for one', async () => {
  await using directory = await temporaryDirectory()
  // Nothing can be asked there.
  vi.stubEnv('SANDLOT_URL', 'http://127.0.0.1:1')
  vi.stubEnv('SANDLOT_API_KEY', 'sk_none')
  const output = join(directory.path, 'trainer.key')
  await expect(createKeyCommand({ scope: 'run', output })).rejects.toThrow('127.0.0.1:1')
  expect(await readdir(directory.path)).toEqual([])
})
