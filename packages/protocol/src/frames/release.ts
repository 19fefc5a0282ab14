import { END_BYTE, FRAME, FRAME_LIMITS, START_BYTE } from './frame.ts'

const { header: HEADER, overhead: OVERHEAD } = FRAME_LIMITS

type Detachable = ArrayBuffer & { transfer?(bytes: number): ArrayBuffer }

/**
 * Gives back the memory of a large data payload that its reader is done with: nobody may use it any more. The engine alone
 * would collect its whole heap for every few dozen megabytes of payloads, which costs more than to move them. Does
 * nothing where the payload is not alone in its buffer, or where the engine can't give back a buffer.
 */
export function releasePayload(payload: Uint8Array): void {
  const { buffer, byteOffset, length } = payload
  if (length < RELEASE_BYTES_MIN || byteOffset !== HEADER) return
  if (buffer.byteLength !== length + OVERHEAD) return
  const frame = new Uint8Array(buffer)
  const isData = frame[0] === START_BYTE && frame[1] === FRAME.data
  if (isData && frame[length + HEADER] === END_BYTE) (buffer as Detachable).transfer?.(0)
}

/** Smaller ones may lie in a block that the engine shares out. */
const RELEASE_BYTES_MIN = 32_768
