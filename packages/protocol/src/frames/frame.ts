/**
 * The frame of docs/wire.md: a 12-byte header, a payload, an end byte.
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 1 | start `0xA7` |
 * | 1 | 1 | type |
 * | 2 | 1 | channel |
 * | 3 | 1 | flags, 0 |
 * | 4 | 4 | stream id, little-endian |
 * | 8 | 4 | payload length, little-endian |
 * | 12 | n | payload |
 * | 12 + n | 1 | end `0xA8` |
 */
export const FRAME = {
  hello: 0x01,
  sync: 0x02,
  syncAck: 0x03,
  ping: 0x04,
  pong: 0x05,
  open: 0x10,
  data: 0x11,
  credit: 0x12,
  end: 0x13,
  event: 0x14,
  result: 0x15,
  error: 0x16,
  cancel: 0x17,
} as const
export type FrameName = keyof typeof FRAME
export type FrameType = (typeof FRAME)[FrameName]

export const START_BYTE = 0xa7
export const END_BYTE = 0xa8
export const PADDING_BYTE = 0x00

/** Sizes in bytes. */
export const FRAME_LIMITS = {
  header: 12,
  /** Header and end byte. */
  overhead: 13,
  payload: 65_536,
  /** The longest frame; as many zeros end whatever a dead writer left half written. */
  frame: 65_549,
  /** Credit that each direction of each channel starts with. */
  window: 262_144,
  /** Credit of a channel that carries a whole file: enough that a hop on a busy machine doesn't run dry. */
  fileWindow: 1_048_576,
  syncMagic: 16,
  nonce: 16,
  /** Payload of a sync and of its acknowledgement: magic and nonce. */
  sync: 32,
  ping: 8,
  credit: 4,
} as const

/** ASCII `sandlot-sync-v1\n`. */
export const SYNC_MAGIC: Uint8Array = new TextEncoder().encode('sandlot-sync-v1\n')

/** How many bytes a payload of a type may have; -1 where there is no such type. */
const PAYLOAD_MIN = new Int32Array(256).fill(-1)
const PAYLOAD_MAX = new Int32Array(256).fill(-1)
for (const [name, type] of Object.entries(FRAME)) {
  const exact = { sync: 32, syncAck: 32, ping: 8, pong: 8, credit: 4, end: 0, cancel: 0 }[name]
  PAYLOAD_MIN[type] = exact ?? 1
  PAYLOAD_MAX[type] = exact ?? FRAME_LIMITS.payload
}

export function isFrameType(type: number): type is FrameType {
  return (PAYLOAD_MIN[type] ?? -1) >= 0
}

/** Whether a payload of this many bytes can belong to this type. */
export function takesPayload(type: number, length: number): boolean {
  return length >= (PAYLOAD_MIN[type] ?? 1) && length <= (PAYLOAD_MAX[type] ?? 0)
}

/** What was wrong with bytes that are no frame; the words of native/frames/vectors.json, then the stream's own. */
export const MALFORMED_REASONS = [
  'start',
  'type',
  'flags',
  'length',
  'end',
  'magic',
  /** Control payload that is not a MessagePack map within its bounds. */
  'payload',
  /** A frame for a stream that was never opened, or that this side may not send on it. */
  'stream',
  /** A channel that no stream has. */
  'channel',
  /** Data beyond the credit, or after the end of its channel. */
  'credit',
] as const
export type MalformedReason = (typeof MALFORMED_REASONS)[number]

/** The peer broke the framing; nothing after it can be believed. */
export class MalformedFrame extends Error {
  override readonly name = 'MalformedFrame'
  readonly reason: MalformedReason

  constructor(reason: MalformedReason, detail: string) {
    super(`malformed frame (${reason}): ${detail}`)
    this.reason = reason
  }
}

/** Gets each frame as it comes. `payload` belongs to the sink, but may be a view on the chunk it came in. */
export type FrameSink = (
  type: FrameType,
  channel: number,
  stream: number,
  payload: Uint8Array,
) => void
