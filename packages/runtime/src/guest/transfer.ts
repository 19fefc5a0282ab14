import { FRAME_LIMITS, type MuxStream, releasePayload } from '@sandlot/protocol/frames'
import type { z } from 'zod'
import type { ContentStream, GuestBytes } from './guest.ts'
import { GuestError } from './guest-error.ts'
import type { GuestLink } from './link.ts'

/** Channels of a request with content. */
export const UPLOAD = 0
export const DOWNLOAD = 1

/** Content that comes from the guest on channel 1 of a request. */
export function download<T>(
  link: GuestLink,
  op: string,
  stream: MuxStream,
  shape: z.ZodType<T>,
): ContentStream<T> {
  const result = link.answer(op, stream, shape)
  result.catch(ignore)
  const cancel = () => stream.abort(new GuestError('cancelled', `${op} was cancelled`))
  const chunks = stream.read(DOWNLOAD, { window: FRAME_LIMITS.fileWindow })[Symbol.asyncIterator]()
  const iterator: AsyncIterator<Uint8Array> = {
    next: async () => {
      const next = await translated(link, chunks.next())
      // A transfer that fails may close its channel before it says why: the end counts only with the result.
      if (next.done) await result
      return next
    },
    return: async () => {
      cancel()
      return { done: true, value: undefined }
    },
  }
  return { result, cancel, [Symbol.asyncIterator]: () => iterator }
}

/** Content of a request that could not even be sent. */
export function failedDownload(error: unknown): ContentStream<never> {
  const result = Promise.reject(error)
  result.catch(ignore)
  const iterator: AsyncIterator<Uint8Array> = { next: () => Promise.reject(error) }
  return { result, cancel: ignore, [Symbol.asyncIterator]: () => iterator }
}

/**
 * Sends content on channel 0, as fast as the guest takes it. A source that throws aborts the request with what it
 * threw; a request that is over leaves the source.
 */
export async function upload(stream: MuxStream, content: GuestBytes): Promise<void> {
  try {
    if (content instanceof Uint8Array) await stream.send(UPLOAD, content).catch(ignore)
    else {
      for await (const bytes of content) {
        const taken = await stream.send(UPLOAD, bytes).then(yes, no)
        if (!taken) return
        releasePayload(bytes)
      }
    }
    stream.end(UPLOAD)
  } catch (error) {
    stream.abort(error)
  }
}

/** What a wait on a stream gives, with the failures that the guest's callers know. */
export async function translated<T>(link: GuestLink, wait: Promise<T>): Promise<T> {
  try {
    return await wait
  } catch (error) {
    throw link.failure(error)
  }
}

function yes(): boolean {
  return true
}

function no(): boolean {
  return false
}

function ignore(): void {}
