import { encodeSync } from './encode.ts'
import { END_BYTE, FRAME_LIMITS, START_BYTE } from './frame.ts'

/** What a side that lost the boundary waits for: any sync (the agent), or the acknowledgement of its own nonce (the daemon). */
export type Prey =
  | { readonly type: 'sync' }
  | { readonly type: 'syncAck'; readonly nonce: Uint8Array }

const LENGTH = FRAME_LIMITS.overhead + FRAME_LIMITS.sync
const NO_NONCE = new Uint8Array(FRAME_LIMITS.nonce)

/**
 * Where from `from` on the prey may begin; everything before is to be dropped. `whole`: it lies there whole, else it may begin
 * there and more bytes are needed.
 */
export function findPrey(
  prey: Prey,
  bytes: Uint8Array,
  from: number,
): { at: number; whole: boolean } {
  const nonce = prey.type === 'sync' ? NO_NONCE : prey.nonce
  const frame = encodeSync(prey.type, nonce)
  const known = prey.type === 'sync' ? LENGTH - 1 - FRAME_LIMITS.nonce : LENGTH - 1
  let at = bytes.indexOf(START_BYTE, from)
  while (at >= 0) {
    const left = bytes.length - at
    if (matches(bytes, at, frame, Math.min(left, known))) {
      if (left < LENGTH) return { at, whole: false }
      if (bytes[at + LENGTH - 1] === END_BYTE) return { at, whole: true }
    }
    at = bytes.indexOf(START_BYTE, at + 1)
  }
  return { at: bytes.length, whole: false }
}

function matches(bytes: Uint8Array, at: number, pattern: Uint8Array, count: number): boolean {
  for (let i = 0; i < count; i++) if (bytes[at + i] !== pattern[i]) return false
  return true
}
