/**
 * Buffers for frames on their way to a transport, used again and again: memory that is new for each write costs page faults, and
 * makes the engine collect its whole heap for every few dozen megabytes. Shared by all connections of the process, so that
 * an idle one holds none.
 */
import { FRAME_LIMITS } from './frame.ts'

/** A write ends with the frame that fills it, so two of the longest always fit. */
export const WRITE_BUFFER_BYTES = 2 * FRAME_LIMITS.frame
/** Kept while no write needs them. */
const SPARE_BUFFERS_MAX = 16

const spare: Uint8Array<ArrayBuffer>[] = []

export function takeWriteBuffer(): Uint8Array<ArrayBuffer> {
  return spare.pop() ?? new Uint8Array(WRITE_BUFFER_BYTES)
}

/** Takes back the buffer in which these bytes lie, if it is one of them. Nobody may use the bytes any more. */
export function returnWriteBuffer(bytes: Uint8Array): void {
  const { buffer } = bytes
  if (buffer.byteLength !== WRITE_BUFFER_BYTES || spare.length >= SPARE_BUFFERS_MAX) return
  if (buffer instanceof ArrayBuffer) spare.push(new Uint8Array(buffer))
}
