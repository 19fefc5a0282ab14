import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Digest } from '../blobs.ts'
import { systemClock } from '../clock.ts'
import { describeBlobs } from '../conformance/describe-blobs.ts'
import { bytes, expectCode, text } from '../conformance/engine-under-test.ts'
import { SqliteEngine } from './engine.ts'
import { makeSqliteEngine, temporaryDirectory } from './under-test.ts'

describeBlobs(makeSqliteEngine)

test('sets a blob aside whose file has changed, and takes it anew', async () => {
  await using place = await temporaryDirectory()
  await using engine = await open(place.path)
  const { digest } = await engine.blobs.put(bytes('content'))
  await writeFile(fileOf(place.path, digest), 'CONTENT')
  await expectCode(drain(engine, digest), 'blob_corrupt')
  expect(await engine.blobs.has(digest)).toBeUndefined()
  expect(await readdir(join(place.path, 'blobs', 'corrupt'))).toEqual([digest.replace(':', '-')])
  await engine.blobs.put(bytes('content'))
  expect(await drain(engine, digest)).toBe('content')
})

test('replaces a file that has become shorter when the blob is put again', async () => {
  await using place = await temporaryDirectory()
  await using engine = await open(place.path)
  const { digest } = await engine.blobs.put(bytes('content'))
  await writeFile(fileOf(place.path, digest), 'con')
  await engine.blobs.put(bytes('content'))
  expect(await drain(engine, digest)).toBe('content')
})

test('removes what an earlier process left half written', async () => {
  await using place = await temporaryDirectory()
  await (await open(place.path))[Symbol.asyncDispose]()
  const incoming = join(place.path, 'blobs', 'incoming')
  await writeFile(join(incoming, 'half'), 'half of some')
  await using engine = await open(place.path)
  expect(await readdir(incoming)).toEqual([])
  const { digest } = await engine.blobs.put(bytes('whole'))
  expect(await readFile(fileOf(place.path, digest), 'utf8')).toBe('whole')
  expect(await readdir(incoming)).toEqual([])
})

test('asks a source for no more than it can write', async () => {
  await using place = await temporaryDirectory()
  await using engine = await open(place.path)
  const incoming = join(place.path, 'blobs', 'incoming')
  const chunk = new Uint8Array(1024 * 1024)
  let given = 0
  const source = (async function* () {
    for (; given < 16; given++) {
      // All chunks before this one are on disk, so none is held.
      const [name = ''] = await readdir(incoming)
      expect((await readFile(join(incoming, name))).byteLength).toBe(given * chunk.byteLength)
      yield chunk
    }
  })()
  const { sizeBytes } = await engine.blobs.put(source)
  expect(sizeBytes).toBe(16 * chunk.byteLength)
})

function open(directory: string): Promise<SqliteEngine> {
  return SqliteEngine.open({
    storage: { directory, durability: 'power' },
    clock: systemClock,
    busFaults: undefined,
  })
}

async function drain(engine: SqliteEngine, digest: Digest): Promise<string> {
  const { body } = await engine.blobs.open(digest)
  return text(Buffer.concat(await Array.fromAsync(body)))
}

function fileOf(directory: string, digest: Digest): string {
  return join(directory, 'blobs', digest.slice(7, 9), digest.slice(9))
}
