import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { Digest } from '../blobs.ts'
import { EngineError } from '../error.ts'
import { BLOB_CHUNK_BYTES } from '../limits.ts'
import { onAbort } from '../on-abort.ts'
import { storageError } from './sqlite-error.ts'

export interface ReadBlobOptions {
  /** Closed when the body ends in any way. */
  readonly handle: FileHandle
  readonly offset: number
  readonly length: number
  /** Of a whole blob: what its bytes must give, and what to do where they don't. */
  readonly verify: { readonly digest: Digest; readonly corrupt: () => Promise<void> } | undefined
  readonly signal: AbortSignal | undefined
}

/** Reads only what is asked for, a chunk at a time. */
export function readBlob(options: ReadBlobOptions): ReadableStream<Uint8Array> {
  const { handle, verify, signal } = options
  const hash = verify && createHash('sha256')
  let at = options.offset
  const end = options.offset + options.length
  let forgetSignal = () => {}
  const release = async () => {
    forgetSignal()
    await handle.close()
  }
  const check = async () => {
    if (verify === undefined) {
      if (at < end) throw new EngineError('blob_corrupt', 'a stored blob has become shorter')
      return
    }
    if (`sha256:${hash?.digest('hex')}` === verify.digest) return
    await verify.corrupt()
    throw new EngineError('blob_corrupt', `the stored bytes of ${verify.digest} have changed`)
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        forgetSignal = onAbort(signal, () => {
          controller.error(signal?.reason)
          release().catch(() => {})
        })
      },
      async pull(controller) {
        try {
          const chunk = await readChunk(handle, at, end)
          at += chunk.byteLength
          hash?.update(chunk)
          // An empty chunk before the end: the file is shorter than it was.
          const over = at >= end || chunk.byteLength === 0
          if (over) await check()
          if (signal?.aborted) return
          if (chunk.byteLength > 0) controller.enqueue(chunk)
          if (!over) return
          await release()
          controller.close()
        } catch (error) {
          if (signal?.aborted) return
          await release()
          controller.error(storageError(error, 'a blob could not be read'))
        }
      },
      cancel: release,
    },
    { highWaterMark: 0 },
  )
}

async function readChunk(handle: FileHandle, at: number, end: number): Promise<Uint8Array> {
  const buffer = new Uint8Array(Math.min(BLOB_CHUNK_BYTES, end - at))
  const { bytesRead } = await handle.read(buffer, 0, buffer.byteLength, at)
  return bytesRead === buffer.byteLength ? buffer : buffer.subarray(0, bytesRead)
}
