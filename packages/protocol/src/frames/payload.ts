import { Decoder, Encoder } from '@msgpack/msgpack'
import { FRAME_LIMITS, MalformedFrame } from './frame.ts'

/** A control payload: a MessagePack map with string keys. Byte strings are `Uint8Array`, text is `string`. */
export type PayloadMap = Record<string, unknown>

/** Deepest nesting of a control payload. */
export const PAYLOAD_DEPTH_MAX = 16

/** A control payload that does not fit a frame: the sender's mistake. */
export class PayloadTooLarge extends RangeError {
  override readonly name = 'PayloadTooLarge'

  constructor(sizeBytes: number) {
    super(`a control payload of ${sizeBytes} bytes exceeds a frame's ${FRAME_LIMITS.payload}`)
  }
}

/** A map with a key that no decoder takes: the sender's mistake. */
export class PayloadRefused extends RangeError {
  override readonly name = 'PayloadRefused'

  constructor(key: string) {
    super(`a name can't be ${key}`)
  }
}

const encoder = new Encoder({ ignoreUndefined: true, maxDepth: PAYLOAD_DEPTH_MAX })
const decoder = new Decoder()

/**
 * Encodes a map; keys whose value is undefined are left out. The bytes are valid until the next call.
 * Throws `PayloadTooLarge`, or `PayloadRefused` for a key over which the peer would end the connection.
 */
export function encodePayload(map: PayloadMap): Uint8Array {
  const bytes = encoder.encodeSharedRef(map)
  if (bytes.length > FRAME_LIMITS.payload) throw new PayloadTooLarge(bytes.length)
  if (hasPrototypeKey(map)) throw new PayloadRefused(PROTOTYPE_KEY)
  return bytes
}

const PROTOTYPE_KEY = '__proto__'

function hasPrototypeKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false
  if (Array.isArray(value)) return value.some(hasPrototypeKey)
  for (const key in value) {
    if (key === PROTOTYPE_KEY || hasPrototypeKey((value as PayloadMap)[key])) return true
  }
  return false
}

/** Decodes a map from an untrusted peer. Byte strings in it are views on `bytes`. Throws `MalformedFrame`. */
export function decodePayload(bytes: Uint8Array): PayloadMap {
  const first = bytes[0] ?? 0
  const isMap = (first & 0xf0) === 0x80 || first === 0xde || first === 0xdf
  if (!isMap || measureValue(bytes, 0) !== bytes.length) {
    throw new MalformedFrame('payload', 'not one MessagePack map')
  }
  try {
    return decoder.decode(bytes) as PayloadMap
  } catch (error) {
    throw new MalformedFrame('payload', error instanceof Error ? error.message : String(error))
  }
}

/**
 * Where the MessagePack value at `start` ends, or undefined when it isn't whole. It is checked before a
 * library allocates for it: containers that claim more items than there are bytes left are not whole, so decoding
 * allocates in proportion to the bytes received. Throws `MalformedFrame` for extension types, keys that are no text, and
 * nesting deeper than 16.
 */
export function measureValue(bytes: Uint8Array, start: number): number | undefined {
  const state = { at: start, claimed: 1 }
  return measure(bytes, state, 0) ? state.at : undefined
}

interface Measuring {
  at: number
  /** Values that are announced and not seen yet; each takes at least a byte. */
  claimed: number
}

function measure(bytes: Uint8Array, state: Measuring, depth: number): boolean {
  if (state.claimed > bytes.length - state.at) return false
  if (depth > PAYLOAD_DEPTH_MAX) throw new MalformedFrame('payload', 'nested too deep')
  const head = bytes[state.at++] ?? 0
  state.claimed--
  if (head <= 0x7f || head >= 0xe0) return true
  if (head <= 0x8f) return items(bytes, state, depth, head & 0x0f, true)
  if (head <= 0x9f) return items(bytes, state, depth, head & 0x0f, false)
  if (head <= 0xbf) return skip(bytes, state, head & 0x1f)
  if (head === 0xc0 || head === 0xc2 || head === 0xc3) return true
  const size = SIZES[head - 0xc0] ?? 0
  if (size === 0) throw new MalformedFrame('payload', `byte 0x${head.toString(16)} starts no value`)
  if (size < 0) return skip(bytes, state, -size)
  const length = readLength(bytes, state, size)
  if (length === undefined) return false
  if (head === 0xdc || head === 0xdd) return items(bytes, state, depth, length, false)
  if (head === 0xde || head === 0xdf) return items(bytes, state, depth, length, true)
  return skip(bytes, state, length)
}

/**
 * For heads 0xc0 … 0xdf: n > 0, a length of n bytes follows; n < 0, a value of -n bytes; 0, not allowed.
 * Nil and booleans are handled before; extension types are not allowed.
 */
const SIZES = [
  0, 0, 0, 0, 1, 2, 4, 0, 0, 0, -4, -8, -1, -2, -4, -8, -1, -2, -4, -8, 0, 0, 0, 0, 0, 1, 2, 4, 2,
  4, 2, 4,
]

function items(
  bytes: Uint8Array,
  state: Measuring,
  depth: number,
  count: number,
  keyed: boolean,
): boolean {
  state.claimed += keyed ? 2 * count : count
  if (state.claimed > bytes.length - state.at) return false
  for (let i = 0; i < count; i++) {
    if (keyed) {
      if (!isText(bytes[state.at] ?? 0)) {
        if (state.at >= bytes.length) return false
        throw new MalformedFrame('payload', 'a key that is no text')
      }
      if (!measure(bytes, state, depth + 1)) return false
    }
    if (!measure(bytes, state, depth + 1)) return false
  }
  return true
}

function isText(head: number): boolean {
  return (head & 0xe0) === 0xa0 || (head >= 0xd9 && head <= 0xdb)
}

function skip(bytes: Uint8Array, state: Measuring, length: number): boolean {
  state.at += length
  return state.at <= bytes.length
}

function readLength(bytes: Uint8Array, state: Measuring, size: number): number | undefined {
  if (state.at + size > bytes.length) return undefined
  let length = 0
  for (let i = 0; i < size; i++) length = length * 256 + (bytes[state.at++] ?? 0)
  return length
}
