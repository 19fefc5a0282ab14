/**
 * Streams of untrusted bytes on their way into a layer: interruptible, checked against their digest, unpacked.
 */
import { createHash } from 'node:crypto'
import { addAbortListener } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import type { OpenBlob } from './build.ts'
import { sourceInvalid } from './image-error.ts'
import { imageLimits } from './limits.ts'

const GZIP = [0x1f, 0x8b]
const ZSTD = [0x28, 0xb5, 0x2f, 0xfd]
const XZ = [0xfd, 0x37, 0x7a, 0x58]
const BZIP2 = [0x42, 0x5a, 0x68]

/** A blob's bytes; fails at the end with `image_source_invalid` when they are not what the digest says. */
export async function* verifiedBlob(
  digest: string,
  open: OpenBlob,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  yield* verified(untilAborted(await open(digest, { signal }), signal), digest)
}

export async function* verified(
  chunks: AsyncIterable<Uint8Array>,
  digest: string,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  for await (const chunk of chunks) {
    hash.update(chunk)
    yield chunk
  }
  const found = `sha256:${hash.digest('hex')}`
  if (found === digest) return
  throw sourceInvalid(
    `The content is damaged: ${digest} was announced, ${found} arrived.`,
    'Send it again.',
  )
}

/** Stops at once when aborted, even if the producer never says another word. */
export async function* untilAborted(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]()
  const aborted = Promise.withResolvers<never>()
  aborted.promise.catch(() => {})
  using _listener = addAbortListener(signal, () => aborted.reject(signal.reason))
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted.promise])
      if (next.done) return
      yield next.value
    }
  } finally {
    // Not awaited when aborted: a producer that hangs would hang this too.
    const ended = iterator.return?.()
    if (signal.aborted) ended?.catch(() => {})
    else await ended
  }
}

/** Plain bytes of a stream that may be compressed by gzip or zstd. */
export async function* decompressed(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]()
  const head = await iterator.next()
  if (head.done) return
  const all = resumed(head.value, iterator)
  const starts = (magic: readonly number[]): boolean =>
    magic.every((byte, index) => head.value[index] === byte)
  if (starts(XZ) || starts(BZIP2)) {
    await iterator.return?.()
    throw sourceInvalid(
      'The archive is compressed by xz or bzip2, which is not supported.',
      'Compress it by gzip or zstd, or send it plain.',
    )
  }
  if (!starts(GZIP) && !starts(ZSTD)) {
    yield* all
    return
  }
  const unpacker = starts(GZIP) ? createGunzip() : createZstdDecompress()
  const packed = { bytes: 0 }
  const pumped = pipeline(Readable.from(counted(all, packed)), unpacker)
  pumped.catch(() => {})
  let unpackedBytes = 0
  try {
    for await (const chunk of unpacker) {
      unpackedBytes += chunk.length
      checkRatio(packed.bytes, unpackedBytes)
      yield chunk
    }
  } catch (cause) {
    throw isZlibError(cause)
      ? sourceInvalid('The compressed archive is damaged.', 'Pack and send it again.', cause)
      : cause
  }
  await pumped
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  count: { bytes: number },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    count.bytes += chunk.length
    yield chunk
  }
}

/** A few bytes could fill the disk, or keep this process busy for minutes. */
function checkRatio(packedBytes: number, unpackedBytes: number): void {
  const { unpackedBytesFree, unpackedRatioMax } = imageLimits
  if (unpackedBytes <= unpackedBytesFree || unpackedBytes <= unpackedRatioMax * packedBytes) return
  throw sourceInvalid(
    `The compressed archive unpacks to more than ${unpackedRatioMax} times its size.`,
    'Send it plain, or leave out what is nothing but zeros.',
  )
}

async function* resumed(
  first: Uint8Array,
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield first
    for (;;) {
      const next = await rest.next()
      if (next.done) return
      yield next.value
    }
  } finally {
    await rest.return?.()
  }
}

function isZlibError(cause: unknown): boolean {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return code.startsWith('Z_') || code.startsWith('ZSTD_') || code === 'ERR_BUFFER_OUT_OF_BOUNDS'
}
