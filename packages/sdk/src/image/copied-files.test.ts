import { once } from 'node:events'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, localCopy, tarOfFiles } from './copied-files.ts'

const place = () => mkdtempDisposable(join(tmpdir(), 'sandlot-copied-'))

async function packed(tar: ReturnType<typeof tarOfFiles>): Promise<number> {
  const parts = await Array.fromAsync(tar.bytes)
  return parts.reduce((sum, { length }) => sum + length, 0)
}

test('a socket and a device are named, unless they are left out', async () => {
  await using directory = await place()
  await writeFile(join(directory.path, 'file'), 'x')
  await using server = createServer()
  server.listen(join(directory.path, 'socket'))
  await once(server, 'listening')
  const copy = localCopy(directory.path, '/x')
  await expect(copy.tar().then(packed)).rejects.toMatchObject({
    code: 'file_not_regular',
    message: expect.stringContaining(`${directory.path}/socket is a socket, a device or a FIFO`),
    hint: expect.stringContaining('.dockerignore'),
  })
  const without = localCopy(directory.path, '/x', ['socket'])
  expect(await packed(await without.tar())).toBeGreaterThan(512)
  await expect(localCopy('/dev/null', '/x').tar().then(packed)).rejects.toMatchObject({
    code: 'file_not_regular',
  })
})

test('more entries than a layer may have are refused before any is read', async () => {
  await using directory = await place()
  for (const name of ['a', 'b', 'c']) await writeFile(join(directory.path, name), name)
  expect(await filesBelow(directory.path, [], 3)).toHaveLength(3)
  expect(await filesBelow(directory.path, ['b', 'c'], 1)).toHaveLength(1)
  await expect(filesBelow(directory.path, [], 2)).rejects.toMatchObject({
    code: 'too_large',
    message: `${directory.path} has more than 2 entries`,
    hint: expect.stringContaining('.dockerignore'),
  })
})

test('a file that is gone, or can’t be read, is named', async () => {
  await using directory = await place()
  const gone = join(directory.path, 'gone')
  await expect(localCopy(gone, '/x').tar()).rejects.toMatchObject({
    code: 'not_found',
    message: expect.stringContaining(gone),
  })
  await expect(packed(tarOfFiles([{ path: gone, name: 'gone' }], true))).rejects.toMatchObject({
    message: expect.stringContaining(gone),
  })
})
