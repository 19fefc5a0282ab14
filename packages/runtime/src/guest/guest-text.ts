import type { GuestText } from './guest.ts'
import { GuestError } from './guest-error.ts'
import { GUEST_LIMITS } from './limits.ts'

const encoder = new TextEncoder()

/** The bytes of a text for a guest; `invalid` when they hold a NUL byte, which no name, path or argument can. */
export function toBytes(text: GuestText): Uint8Array {
  const bytes = typeof text === 'string' ? encoder.encode(text) : text
  if (bytes.includes(0)) throw new GuestError('invalid', 'text for a guest holds a NUL byte')
  return bytes
}

/** The bytes of a path; `invalid` when it is empty or longer than a path can be. */
export function toPath(path: GuestText): Uint8Array {
  const bytes = toBytes(path)
  if (bytes.length > 0 && bytes.length < GUEST_LIMITS.pathBytes) return bytes
  throw new GuestError('invalid', `a path of ${bytes.length} bytes: 1 … 4,095 are possible`)
}
