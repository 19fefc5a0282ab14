import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { checkSize, invalid } from '../argument.ts'
import type { BlobInfo, BlobSource, Digest } from '../blobs.ts'
import { BLOB_CHUNK_BYTES } from '../limits.ts'
import { onAbort } from '../on-abort.ts'
import { type BlobFiles, io } from './blob-files.ts'

export interface WriteIncomingOptions {
  readonly files: BlobFiles
  /** Becomes the file's time of modification. */
  readonly modifiedMs: number
  readonly sizeBytesMax: number
  readonly signals: readonly (AbortSignal | undefined)[]
}

/** A blob that is written and flushed, and not yet to be seen. Disposing discards it unless it was accepted. */
export interface Incoming extends BlobInfo, AsyncDisposable {
  accept(): Promise<void>
}

/** Writes the source to a file of its own. Nothing is left when it throws. */
export async function writeIncoming(
  source: BlobSource,
  { files, modifiedMs, sizeBytesMax, signals }: WriteIncomingOptions,
): Promise<Incoming> {
  const { path, handle } = await files.createIncoming()
  const discard = () => files.discardIncoming(path)
  const hash = createHash('sha256')
  let sizeBytes = 0
  try {
    for await (const chunk of gather(chunksOf(source, signals))) {
      sizeBytes += chunk.byteLength
      checkSize('the blob', sizeBytes, sizeBytesMax)
      hash.update(chunk)
      await io('a blob could not be written', () => writeAll(handle, chunk))
    }
    await io('a blob could not be written', async () => {
      await handle.utimes(modifiedMs / 1000, modifiedMs / 1000)
      await handle.sync()
    })
  } catch (error) {
    await handle.close()
    await discard()
    throw error
  }
  await handle.close()
  const digest: Digest = `sha256:${hash.digest('hex')}`
  return {
    digest,
    sizeBytes,
    accept: () => files.accept(path, digest, { sizeBytes, modifiedMs }),
    [Symbol.asyncDispose]: discard,
  }
}

/** The source's chunks, until it ends or a signal aborts; a source that hangs is left behind. */
async function* chunksOf(
  source: BlobSource,
  signals: readonly (AbortSignal | undefined)[],
): AsyncGenerator<Uint8Array> {
  if (source instanceof Uint8Array) {
    yield source
    return
  }
  // Not a race against one promise that lasts: it would keep every chunk until it settles.
  let reason: unknown
  let abandon: (() => void) | undefined
  const stops = signals.map((signal) =>
    onAbort(signal, () => {
      reason ??= signal?.reason
      abandon?.()
    }),
  )
  const iterator = source[Symbol.asyncIterator]()
  const next = () =>
    new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
      abandon = () => reject(reason)
      if (reason !== undefined) abandon()
      else iterator.next().then(resolve, reject)
    })
  let ended = false
  try {
    for (;;) {
      const { done, value } = await next()
      ended = done === true
      if (ended) return
      if (!(value instanceof Uint8Array)) throw invalid('source', 'must give Uint8Array chunks')
      yield value
    }
  } finally {
    for (const stop of stops) stop()
    if (!ended) iterator.return?.()?.catch(() => {})
  }
}

/** Small chunks joined, so that each write is worth its call. */
async function* gather(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = []
  let heldBytes = 0
  for await (const chunk of chunks) {
    held.push(chunk)
    heldBytes += chunk.byteLength
    if (heldBytes < BLOB_CHUNK_BYTES) continue
    yield held.length === 1 ? chunk : Buffer.concat(held)
    held = []
    heldBytes = 0
  }
  if (heldBytes > 0) yield Buffer.concat(held)
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  let offset = 0
  while (offset < bytes.byteLength) {
    offset += (await handle.write(bytes, offset)).bytesWritten
  }
}
