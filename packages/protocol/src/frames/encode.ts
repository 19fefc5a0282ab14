import {
  END_BYTE,
  FRAME,
  FRAME_LIMITS,
  type FrameType,
  START_BYTE,
  SYNC_MAGIC,
  takesPayload,
} from './frame.ts'
import { encodePayload, type PayloadMap } from './payload.ts'
import { returnWriteBuffer, takeWriteBuffer, WRITE_BUFFER_BYTES } from './write-buffers.ts'

/** One frame in bytes of its own. `FrameWriter` is the way for many. */
export function encodeFrame(
  type: FrameType,
  channel: number,
  stream: number,
  payload: Uint8Array,
): Uint8Array {
  const writer = new FrameWriter()
  writer.frame(type, channel, stream, payload)
  return writer.take()
}

/** A sync, or the acknowledgement of one, for a nonce of 16 bytes. */
export function encodeSync(type: 'sync' | 'syncAck', nonce: Uint8Array): Uint8Array {
  const payload = new Uint8Array(FRAME_LIMITS.sync)
  payload.set(SYNC_MAGIC)
  payload.set(nonce, FRAME_LIMITS.syncMagic)
  return encodeFrame(FRAME[type], 0, 0, payload)
}

/** Below this a taken buffer is copied, so that the writer's own can be used again. */
const COPY_BYTES_MAX = 8_192
const BUFFER_BYTES_MIN = 16_384
const NOTHING = new Uint8Array(0)

/** Appends frames to one growing buffer, so that many small ones leave as one write. */
export class FrameWriter {
  #buffer = NOTHING
  #length = 0

  /** Bytes that wait to be taken. */
  get length(): number {
    return this.#length
  }

  frame(type: FrameType, channel: number, stream: number, payload: Uint8Array): void {
    this.begin(type, channel, stream, payload.length)
    this.append(payload)
    this.finish()
  }

  /** A frame with a map; throws `PayloadTooLarge` and then has written nothing. */
  map(type: FrameType, stream: number, map: PayloadMap): void {
    this.frame(type, 0, stream, encodePayload(map))
  }

  credit(channel: number, stream: number, bytes: number): void {
    this.begin(FRAME.credit, channel, stream, FRAME_LIMITS.credit)
    this.#write32(bytes)
    this.finish()
  }

  /** Starts a frame whose payload of `length` bytes comes by `append`; `finish` must follow. */
  begin(type: FrameType, channel: number, stream: number, length: number): void {
    if (!takesPayload(type, length)) {
      throw new RangeError(`a frame of type ${type} can't have ${length} bytes`)
    }
    this.#reserve(length + FRAME_LIMITS.overhead)
    const buffer = this.#buffer
    const at = this.#length
    buffer[at] = START_BYTE
    buffer[at + 1] = type
    buffer[at + 2] = channel
    buffer[at + 3] = 0
    this.#length = at + 4
    this.#write32(stream)
    this.#write32(length)
  }

  append(bytes: Uint8Array): void {
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  finish(): void {
    this.#buffer[this.#length++] = END_BYTE
  }

  /** What was written, in bytes that are the caller's; the writer begins anew. */
  take(): Uint8Array {
    const written = this.#buffer.subarray(0, this.#length)
    const small = this.#length <= COPY_BYTES_MAX && this.#buffer.length < WRITE_BUFFER_BYTES
    this.#length = 0
    if (small) return written.slice()
    this.#buffer = NOTHING
    return written
  }

  /** The same, lent: when the bytes are done with, they are written to again. Without the call they are the caller's. */
  lend(): [bytes: Uint8Array, done: () => void] {
    const bytes = this.take()
    let lent: Uint8Array | undefined = bytes
    const done = () => {
      if (lent) returnWriteBuffer(lent)
      lent = undefined
    }
    return [bytes, done]
  }

  /** Drops what was written. */
  clear(): void {
    this.#length = 0
    this.#buffer = NOTHING
  }

  #write32(value: number): void {
    const buffer = this.#buffer
    const at = this.#length
    buffer[at] = value
    buffer[at + 1] = value >>> 8
    buffer[at + 2] = value >>> 16
    buffer[at + 3] = value >>> 24
    this.#length = at + 4
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const grown = bufferFor(needed)
    grown.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = grown
  }
}

function bufferFor(bytes: number): Uint8Array<ArrayBuffer> {
  if (bytes <= BUFFER_BYTES_MIN) return new Uint8Array(BUFFER_BYTES_MIN)
  return bytes <= WRITE_BUFFER_BYTES ? takeWriteBuffer() : new Uint8Array(2 * bytes)
}
