import {
  END_BYTE,
  FRAME,
  FRAME_LIMITS,
  type FrameSink,
  type FrameType,
  isFrameType,
  MalformedFrame,
  PADDING_BYTE,
  START_BYTE,
  SYNC_MAGIC,
  takesPayload,
} from './frame.ts'
import { findPrey, type Prey } from './hunt.ts'

const { header: HEADER, overhead: OVERHEAD } = FRAME_LIMITS
const NOTHING = new Uint8Array(0)
const LENT_COPY_BYTES_MAX = 16_384

/**
 * Cuts a byte stream into frames, whatever the chunks. It holds one frame at most.
 *
 * `push` throws `MalformedFrame` at the first byte that can't be right; frames before it were delivered. What
 * follows it in the chunk is kept: after `hunt` the next `push` goes on behind the offending byte, or, where only the end of the
 * frame was wrong, behind the whole frame, whose payload is never searched. A decoder that has thrown and does
 * not hunt throws again.
 *
 * A payload is a view on its chunk where it lies whole in it, so chunks must not be written to again; `pushLent` takes chunks that
 * will be.
 */
export class FrameDecoder {
  readonly #sink: FrameSink
  /** A frame under way: room for its header alone until that is known, then for the whole. */
  #frame: Uint8Array = NOTHING
  #filled = 0
  #prey: Prey | undefined
  #failure: MalformedFrame | undefined
  #rest: Uint8Array<ArrayBuffer> = NOTHING
  /** The chunk at hand is only lent. */
  #lent = false

  constructor(sink: FrameSink, options: { hunt?: Prey } = {}) {
    this.#sink = sink
    this.#prey = options.hunt
  }

  get hunting(): boolean {
    return this.#prey !== undefined
  }

  /** Drops everything up to the prey, which is the next frame delivered. */
  hunt(prey: Prey): void {
    this.#prey = prey
    this.#failure = undefined
    this.#filled = 0
  }

  /** Forgets what was read, as after the peer's end of file. */
  reset(): void {
    this.#prey = undefined
    this.#failure = undefined
    this.#rest = NOTHING
    this.#filled = 0
  }

  push(chunk: Uint8Array): void {
    if (this.#failure) throw this.#failure
    let bytes = chunk
    if (this.#rest.length > 0) {
      bytes = joined(this.#rest, chunk)
      this.#rest = NOTHING
    }
    let at = 0
    while (at < bytes.length) {
      if (this.#prey) {
        at = this.#seek(this.#prey, bytes, at)
        if (this.#prey) return
      } else if (this.#filled > 0) at = this.#resume(bytes, at)
      else if (bytes[at] === PADDING_BYTE) at++
      else at = this.#direct(bytes, at)
    }
  }

  /** As `push`; the chunk's bytes may change as soon as it returns. */
  pushLent(chunk: Uint8Array): void {
    // Few bytes are copied at once, many frame by frame, each to a buffer of its own that can be given back.
    const copied = chunk.length <= LENT_COPY_BYTES_MAX
    this.#lent = !copied
    try {
      // Not a Buffer, whose slices would be views.
      this.push(
        copied
          ? new Uint8Array(chunk)
          : new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length),
      )
    } finally {
      this.#lent = false
    }
  }

  /** Looks for the prey; when it is found the hunt is over and it is decoded from where it lies. */
  #seek(prey: Prey, bytes: Uint8Array, from: number): number {
    const found = findPrey(prey, bytes, from)
    if (found.whole) this.#prey = undefined
    else this.#rest = bytes.slice(found.at)
    return found.at
  }

  /** At a boundary: a frame that lies whole in the chunk is delivered without a copy. */
  #direct(bytes: Uint8Array, at: number): number {
    const left = bytes.length - at
    const reason = headerFault(bytes, at, left)
    if (reason) this.#fail(reason, bytes.slice(at + 1))
    const total = left < HEADER ? HEADER : read32(bytes, at + 8) + OVERHEAD
    if (left < total) {
      this.#frame = new Uint8Array(total)
      this.#frame.set(bytes.subarray(at))
      this.#filled = left
      return bytes.length
    }
    const end = at + total
    const payload = this.#lent
      ? bytes.slice(at, end).subarray(HEADER, total - 1)
      : new Uint8Array(bytes.buffer, bytes.byteOffset + at + HEADER, total - OVERHEAD)
    const fault = bodyFault(bytes[at + 1], payload, bytes[end - 1])
    if (fault) this.#fail(fault, bytes.slice(end))
    this.#sink(bytes[at + 1] as FrameType, bytes[at + 2] ?? 0, read32(bytes, at + 4), payload)
    return end
  }

  /** Goes on with a frame whose first bytes came in an earlier chunk. */
  #resume(bytes: Uint8Array, at: number): number {
    const frame = this.#frame
    const taken = Math.min(frame.length - this.#filled, bytes.length - at)
    const next = at + taken
    frame.set(bytes.subarray(at, next), this.#filled)
    this.#filled += taken
    if (frame.length > HEADER) {
      if (this.#filled === frame.length) this.#complete(frame, bytes, next)
      return next
    }
    const reason = headerFault(frame, 0, this.#filled)
    if (reason) this.#fail(reason, joined(frame.subarray(1, this.#filled), bytes.subarray(next)))
    if (this.#filled === HEADER) {
      this.#frame = new Uint8Array(read32(frame, 8) + OVERHEAD)
      this.#frame.set(frame)
    }
    return next
  }

  #complete(frame: Uint8Array, chunk: Uint8Array, next: number): void {
    this.#frame = NOTHING
    this.#filled = 0
    const payload = frame.subarray(HEADER, frame.length - 1)
    const fault = bodyFault(frame[1], payload, frame[frame.length - 1])
    if (fault) this.#fail(fault, chunk.slice(next))
    this.#sink(frame[1] as FrameType, frame[2] ?? 0, read32(frame, 4), payload)
  }

  #fail(reason: HeaderFault | BodyFault, rest: Uint8Array<ArrayBuffer>): never {
    this.#failure = new MalformedFrame(reason, FAULTS[reason])
    this.#rest = rest
    this.#filled = 0
    throw this.#failure
  }
}

const FAULTS: Record<HeaderFault | BodyFault, string> = {
  start: 'no frame starts here',
  type: 'unknown type',
  flags: 'flags that are not 0',
  length: 'a length that this type of frame cannot have',
  end: 'wrong end byte',
  magic: 'a sync with another magic',
}

type HeaderFault = 'start' | 'type' | 'flags' | 'length'
type BodyFault = 'end' | 'magic'

/** Checks the first `count` bytes of a header as far as they are there. */
function headerFault(bytes: Uint8Array, at: number, count: number): HeaderFault | undefined {
  if (bytes[at] !== START_BYTE) return 'start'
  if (count < 2) return undefined
  const type = bytes[at + 1] ?? 0
  if (!isFrameType(type)) return 'type'
  if (count < 4) return undefined
  if (bytes[at + 3] !== 0) return 'flags'
  if (count < HEADER) return undefined
  return takesPayload(type, read32(bytes, at + 8)) ? undefined : 'length'
}

function bodyFault(
  type: number | undefined,
  payload: Uint8Array,
  end: number | undefined,
): BodyFault | undefined {
  if (end !== END_BYTE) return 'end'
  const isSync = type === FRAME.sync || type === FRAME.syncAck
  return isSync && !SYNC_MAGIC.every((byte, i) => payload[i] === byte) ? 'magic' : undefined
}

function read32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] ?? 0) |
      ((bytes[at + 1] ?? 0) << 8) |
      ((bytes[at + 2] ?? 0) << 16) |
      ((bytes[at + 3] ?? 0) << 24)) >>>
    0
  )
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length)
  bytes.set(first)
  bytes.set(second, first.length)
  return bytes
}
