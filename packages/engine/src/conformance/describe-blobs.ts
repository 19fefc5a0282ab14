import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { BlobSource, Digest } from '../blobs.ts'
import { BLOB_CHUNK_BYTES } from '../limits.ts'
import { bytes, expectCode, type MakeEngine } from './engine-under-test.ts'

const HOUR_MS = 60 * 60 * 1000

/** What every store of blobs must do. */
export function describeBlobs(makeEngine: MakeEngine): void {
  describe('blobs', () => {
    describeStoring(makeEngine)
    describeReading(makeEngine)
    describeCollecting(makeEngine)
  })
}

function describeStoring(makeEngine: MakeEngine): void {
  const sizes = [0, 1, BLOB_CHUNK_BYTES - 1, BLOB_CHUNK_BYTES, 3 * BLOB_CHUNK_BYTES + 17]
  test.each(sizes)('stores and gives back %i bytes, from an array or a stream', async (size) => {
    await using subject = await makeEngine()
    let { blobs } = subject.engine
    const content = pattern(size)
    const digest = digestOf(content)
    const info = { digest, sizeBytes: size }
    expect(await blobs.has(digest)).toBeUndefined()
    expect(await blobs.put(content)).toEqual(info)
    expect(await blobs.put(pieces(content, 7_001))).toEqual(info)
    expect(await blobs.put(new Blob([new Uint8Array(content)]).stream())).toEqual(info)
    blobs = (await subject.crash()).blobs
    expect(await blobs.has(digest)).toEqual(info)
    const opened = await blobs.open(digest)
    expect(opened).toMatchObject({ ...info, length: size })
    expect(digestOf(await drain(opened.body))).toBe(digest)
  })

  test('keeps one of many puts of the same content at once', async () => {
    await using subject = await makeEngine()
    const { blobs } = subject.engine
    const content = pattern(100_000)
    const infos = await Promise.all(
      Array.from({ length: 20 }, (_, n) => blobs.put(pieces(content, 1000 + n), { pin: `p${n}` })),
    )
    expect(new Set(infos.map((info) => info.digest)).size).toBe(1)
    expect((await blobs.pins('p')).pins).toHaveLength(20)
    expect(await blobs.collect({ graceMs: 0 })).toEqual({ blobs: 0, sizeBytes: 0 })
  })

  test('refuses bytes of another digest, or too many, and stores nothing', async () => {
    await using subject = await makeEngine()
    const { blobs } = subject.engine
    const content = pattern(50_000)
    const digest = digestOf(content)
    const other = digestOf(bytes('other'))
    expect(
      await expectCode(blobs.put(content, { expectDigest: other, pin: 'p' }), 'blob_mismatch'),
    ).toEqual({
      expected: other,
      actual: digest,
    })
    await expectCode(blobs.put(content, { sizeBytesMax: 49_999 }), 'too_large')
    await expectCode(blobs.put(pieces(content, 1000), { sizeBytesMax: 49_999 }), 'too_large')
    await expectCode(blobs.put(content, { pin: '../etc' }), 'invalid_argument')
    await expectCode(blobs.put(content, { expectDigest: 'sha256:00' }), 'invalid_argument')
    expect(await blobs.has(digest)).toBeUndefined()
    expect((await blobs.pins('')).pins).toEqual([])
    expect(await blobs.put(content, { expectDigest: digest, sizeBytesMax: 50_000 })).toEqual({
      digest,
      sizeBytes: 50_000,
    })
  })

  test('stores nothing when its source fails, hangs until aborted, or meets the end of the engine', async () => {
    await using subject = await makeEngine()
    let { blobs } = subject.engine
    const failure = new Error('the source broke')
    await expect(blobs.put(endsWith(() => Promise.reject(failure)))).rejects.toBe(failure)
    const controller = new AbortController()
    const hanging = blobs.put(
      endsWith(() => {
        controller.abort(failure)
        return new Promise(() => {})
      }),
      { signal: controller.signal },
    )
    await expect(hanging).rejects.toBe(failure)
    const reached = Promise.withResolvers<void>()
    const closed = expectCode(
      blobs.put(
        endsWith(() => {
          reached.resolve()
          return new Promise(() => {})
        }),
      ),
      'closed',
    )
    await reached.promise
    blobs = (await subject.reopen()).blobs
    await closed
    expect(await blobs.has(digestOf(bytes('begun')))).toBeUndefined()
  })
}

function describeReading(makeEngine: MakeEngine): void {
  test('reads parts', async () => {
    await using subject = await makeEngine()
    const { blobs } = subject.engine
    const content = pattern(BLOB_CHUNK_BYTES * 2 + 100)
    const { digest } = await blobs.put(content)
    const parts: [number, number | undefined][] = [
      [0, 10],
      [BLOB_CHUNK_BYTES - 5, 10],
      [content.byteLength - 3, undefined],
      [content.byteLength - 3, 1000],
      [content.byteLength, undefined],
      [5, 0],
    ]
    for (const [offset, length] of parts) {
      const opened = await blobs.open(digest, { offset, ...(length !== undefined && { length }) })
      const expected = content.subarray(offset, length === undefined ? undefined : offset + length)
      expect(opened.length).toBe(expected.byteLength)
      expect(Buffer.compare(await drain(opened.body), expected)).toBe(0)
    }
    await expectCode(blobs.open(digest, { offset: content.byteLength + 1 }), 'invalid_argument')
    await expectCode(blobs.open(digest, { offset: -1 }), 'invalid_argument')
    await expectCode(blobs.open(digestOf(bytes('none'))), 'not_found')
    await expectCode(blobs.open('sha256:../../etc/passwd'), 'invalid_argument')
  })

  test('stops at its signal', async () => {
    await using subject = await makeEngine()
    const { blobs } = subject.engine
    const { digest } = await blobs.put(pattern(BLOB_CHUNK_BYTES * 4))
    const controller = new AbortController()
    const { body } = await blobs.open(digest, { signal: controller.signal })
    const reader = body.getReader()
    await reader.read()
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(reader.read()).rejects.toBe(reason)
  })

  test('goes on with an open body while the blob is collected', async () => {
    await using subject = await makeEngine()
    const { blobs } = subject.engine
    const content = pattern(BLOB_CHUNK_BYTES * 4)
    const { digest } = await blobs.put(content)
    const { body } = await blobs.open(digest)
    expect((await blobs.collect({ graceMs: 0 })).blobs).toBe(1)
    expect(digestOf(await drain(body))).toBe(digest)
    expect(await blobs.has(digest)).toBeUndefined()
  })
}

function describeCollecting(makeEngine: MakeEngine): void {
  test('collects what no pin keeps, after its grace', async () => {
    await using subject = await makeEngine()
    let { blobs } = subject.engine
    const pinned = await blobs.put(bytes('pinned'), { pin: 'image/a' })
    const loose = await blobs.put(bytes('loose'))
    expect(await blobs.collect()).toEqual({ blobs: 0, sizeBytes: 0 })
    subject.clock.advance(HOUR_MS + 1)
    const fresh = await blobs.put(bytes('fresh'))
    blobs = (await subject.crash()).blobs
    expect(await blobs.collect()).toEqual({ blobs: 1, sizeBytes: 5 })
    expect(await blobs.has(loose.digest)).toBeUndefined()
    expect(await blobs.has(pinned.digest)).toEqual(pinned)
    expect(await blobs.has(fresh.digest)).toEqual(fresh)
  })

  test('renews the grace of what is put again', async () => {
    await using subject = await makeEngine()
    const { blobs } = subject.engine
    const { digest } = await blobs.put(bytes('a'))
    subject.clock.advance(2 * HOUR_MS)
    await blobs.put(bytes('a'))
    expect((await blobs.collect()).blobs).toBe(0)
    expect(await blobs.has(digest)).toBeDefined()
  })

  test('renews the grace of what is asked for to be used', async () => {
    await using subject = await makeEngine()
    const { blobs } = subject.engine
    const { digest } = await blobs.put(bytes('a'))
    subject.clock.advance(2 * HOUR_MS)
    expect(await blobs.has(digest, { renew: true })).toEqual({ digest, sizeBytes: 1 })
    expect((await blobs.collect()).blobs).toBe(0)
    subject.clock.advance(2 * HOUR_MS)
    expect(await blobs.has(digest)).toBeDefined()
    expect((await blobs.collect()).blobs).toBe(1)
    expect(await blobs.has(digest, { renew: true })).toBeUndefined()
  })

  test('keeps one blob under many names, and one name to one blob', async () => {
    await using subject = await makeEngine()
    const { blobs } = subject.engine
    const a = await blobs.put(bytes('a'), { pin: 'x' })
    const b = await blobs.put(bytes('b'))
    await blobs.pin('y', a.digest)
    await blobs.pin('x', b.digest)
    const first = await blobs.pins('', { limit: 1 })
    expect(first).toEqual({ pins: [{ name: 'x', digest: b.digest }], next: 'x' })
    expect(await blobs.pins('', { after: 'x' })).toEqual({
      pins: [{ name: 'y', digest: a.digest }],
    })
    expect((await blobs.collect({ graceMs: 0 })).blobs).toBe(0)
    expect(await blobs.unpin('y')).toBe(true)
    expect(await blobs.unpin('y')).toBe(false)
    expect((await blobs.collect({ graceMs: 0 })).blobs).toBe(1)
    expect(await blobs.has(a.digest)).toBeUndefined()
    await expectCode(blobs.pin('z', a.digest), 'not_found')
  })

  test('never collects what is pinned or put at the same time', async () => {
    await using subject = await makeEngine()
    const { blobs, kv } = subject.engine
    for (let round = 0; round < 20; round++) {
      const content = bytes(`content ${round}`)
      const digest = digestOf(content)
      await blobs.put(content)
      const pinning = blobs.put(content, { pin: `p/${round}` })
      const collecting = blobs.collect({ graceMs: 0 })
      await Promise.all([pinning, collecting, kv.get('other')])
      expect(await blobs.has(digest)).toBeDefined()
    }
  })
}

function pattern(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, n) => (n * 31 + (n >> 8)) & 0xff)
}

async function* pieces(content: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.byteLength; at += size) yield content.subarray(at, at + size)
}

/** A source that gives a first chunk, then what `next` does. */
function endsWith(next: () => Promise<never>): BlobSource {
  return (async function* () {
    yield bytes('begun')
    yield await next()
  })()
}

async function drain(body: ReadableStream<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(body))
}

function digestOf(content: Uint8Array): Digest {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}
