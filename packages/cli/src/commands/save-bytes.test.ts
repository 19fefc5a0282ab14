import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { Mistake } from '../failure.ts'
import { saveBytes } from './save-bytes.ts'

const { signal } = new AbortController()

async function* parts(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) {
    if (text === 'fail') throw new Error('the daemon is away')
    yield Buffer.from(text)
  }
}

test('what is streamed is in a new file, with its mode', async () => {
  await using place = await temporaryDirectory()
  const path = join(place.path, 'file')
  await saveBytes(parts('a', 'b'), path, { signal, mode: 0o600 })
  expect(await readFile(path, 'utf8')).toBe('ab')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test.each([[['fail']], [['a', 'fail']]])(
  'a stream that fails is told as it failed, and leaves no file: %j',
  async (texts) => {
    await using place = await temporaryDirectory()
    const saving = saveBytes(parts(...texts), join(place.path, 'file'), { signal })
    await expect(saving).rejects.toThrow('the daemon is away')
    expect(await readdir(place.path)).toEqual([])
  },
)

test('a file that is there stays, and one that can’t be made is the caller’s mistake', async () => {
  await using place = await temporaryDirectory()
  const path = join(place.path, 'file')
  await saveBytes(parts('a'), path, { signal })
  await expect(saveBytes(parts('b'), path, { signal })).rejects.toThrow(Mistake)
  expect(await readFile(path, 'utf8')).toBe('a')
  const beyond = saveBytes(parts('b'), join(path, 'below'), { signal })
  await expect(beyond).rejects.toMatchObject({ hint: 'check the path' })
})
