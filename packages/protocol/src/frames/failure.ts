/** What an `error` frame holds, both ways. It always fits: what is too long is cut, details that don't fit stay behind. */
import { MalformedFrame } from './frame.ts'
import { encodePayload, type PayloadMap } from './payload.ts'
import type { StreamFailure } from './stream-error.ts'

const CODE_LENGTH_MAX = 64
const MESSAGE_LENGTH_MAX = 4_096
const HINT_LENGTH_MAX = 1_024
const DETAILS_BYTES_MAX = 16_384

/** A failure as it is sent. */
export function failureToSend(failure: StreamFailure): StreamFailure {
  const { code, message, errno, hint, details } = failure
  return {
    code: code.slice(0, CODE_LENGTH_MAX),
    message: message.slice(0, MESSAGE_LENGTH_MAX),
    ...(errno === undefined ? {} : { errno }),
    ...(hint === undefined ? {} : { hint: hint.slice(0, HINT_LENGTH_MAX) }),
    ...(details !== undefined && fits(details) ? { details } : {}),
  }
}

/** What an untrusted peer sent. Throws `MalformedFrame`. */
export function parseFailure(map: PayloadMap): StreamFailure {
  const { code, message, errno, hint, details } = map
  if (typeof code !== 'string' || code.length > CODE_LENGTH_MAX || typeof message !== 'string') {
    throw new MalformedFrame('payload', 'an error without code or message')
  }
  return {
    code,
    message: message.slice(0, MESSAGE_LENGTH_MAX),
    ...(typeof errno === 'number' && Number.isInteger(errno) ? { errno } : {}),
    ...(typeof hint === 'string' ? { hint: hint.slice(0, HINT_LENGTH_MAX) } : {}),
    ...(isMap(details) ? { details } : {}),
  }
}

/** Whatever stands in details, it must not keep the failure itself from being told. */
function fits(details: PayloadMap): boolean {
  try {
    return encodePayload({ details }).length <= DETAILS_BYTES_MAX
  } catch {
    return false
  }
}

function isMap(value: unknown): value is PayloadMap {
  if (typeof value !== 'object' || value === null) return false
  return !Array.isArray(value) && !ArrayBuffer.isView(value)
}
