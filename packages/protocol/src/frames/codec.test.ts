import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { FrameDecoder } from './decoder.ts'
import { encodeFrame, encodeSync, FrameWriter } from './encode.ts'
import { FRAME, FRAME_LIMITS, type FrameType, MalformedFrame, takesPayload } from './frame.ts'

interface Frame {
  type: FrameType
  channel: number
  stream: number
  payload: Uint8Array
}

const anyFrame: fc.Arbitrary<Frame> = fc
  .record({
    type: fc.constantFrom(FRAME.open, FRAME.data, FRAME.event, FRAME.end, FRAME.credit, FRAME.ping),
    channel: fc.nat(255),
    stream: fc.nat(0xffff_ffff),
    payload: fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.nat(FRAME_LIMITS.payload).map((length) => new Uint8Array(length).fill(0xa7)),
    ),
  })
  .map((frame) => {
    const exact = [0, 4, 8].find((length) => takesPayload(frame.type, length))
    if (exact === undefined || takesPayload(frame.type, 1)) {
      return frame.payload.length > 0 ? frame : { ...frame, payload: new Uint8Array(1) }
    }
    return { ...frame, payload: new Uint8Array(exact).fill(7) }
  })

test('frames come out as they went in, whatever the chunks and the padding', () => {
  const part = fc.oneof(
    anyFrame,
    fc.nat(200).map((padding) => padding),
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), fc.array(fc.nat(90_000)), (parts, cuts) => {
      const bytes = join(parts.map((p) => (typeof p === 'number' ? new Uint8Array(p) : encode(p))))
      const frames = parts.filter((p) => typeof p !== 'number')
      expect(decodeAll(split(bytes, cuts)).frames).toEqual(frames)
    }),
    { numRuns: 200 },
  )
})

test('chunks that are only lent may be written over as soon as they were taken', () => {
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 8 }), fc.array(fc.nat(90_000)), (frames, cuts) => {
      const got: Frame[] = []
      const decoder = new FrameDecoder((type, channel, stream, payload) => {
        got.push({ type, channel, stream, payload })
      })
      for (const chunk of split(join(frames.map(encode)), cuts)) {
        const lent = Buffer.from(chunk)
        decoder.pushLent(lent)
        lent.fill(0xee)
      }
      expect(got).toEqual(frames)
    }),
    { numRuns: 100 },
  )
})

test('what a writer lent is written to again when it is done with, and not before', () => {
  const [first, second, third] = [1, 2, 3].map((fill) => new Uint8Array(40_000).fill(fill))
  const writer = new FrameWriter()
  const lend = (payload = new Uint8Array()) => {
    writer.frame(FRAME.data, 0, 1, payload)
    return writer.lend()
  }
  const [bytes, done] = lend(first)
  const [others] = lend(second)
  expect(others.buffer).not.toBe(bytes.buffer)
  expect(bytes).toEqual(encodeFrame(FRAME.data, 0, 1, first ?? bytes))
  done()
  // Said twice it is still given back once.
  done()
  const [again] = lend(third)
  const [another] = lend(first)
  expect(again.buffer).toBe(bytes.buffer)
  expect(another.buffer).not.toBe(bytes.buffer)
})

test('a writer gives the same bytes as single frames', () => {
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 8 }), (frames) => {
      const writer = new FrameWriter()
      for (const { type, channel, stream, payload } of frames) {
        writer.frame(type, channel, stream, payload)
      }
      expect(writer.take()).toEqual(join(frames.map(encode)))
      expect(writer.length).toBe(0)
    }),
    { numRuns: 100 },
  )
})

test('random bytes end in a malformed frame or in waiting, never in anything else', () => {
  const near = fc.oneof(fc.constantFrom(0xa7, 0xa8, 0, 1, 2, 0x10, 0x11, 0x13, 0x17), fc.nat(255))
  fc.assert(
    fc.property(fc.array(near, { maxLength: 400 }), fc.array(fc.nat(50)), (bytes, cuts) => {
      const whole = decodeAll([Uint8Array.from(bytes)])
      expect(decodeAll(split(Uint8Array.from(bytes), cuts))).toEqual(whole)
    }),
    { numRuns: 2_000 },
  )
})

test('a hunter finds its acknowledgement behind anything', () => {
  const nonce = fc.uint8Array({ minLength: 16, maxLength: 16 })
  const rubbish = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.nat(44).map((length) => encodeSync('syncAck', new Uint8Array(16)).slice(0, length)),
    fc.constant(encodeSync('sync', new Uint8Array(16))),
  )
  const end = { type: FRAME.end, channel: 1, stream: 9, payload: new Uint8Array(0) }
  fc.assert(
    fc.property(nonce, fc.array(rubbish), fc.array(fc.nat(100)), (own, before, cuts) => {
      const ack = encodeSync('syncAck', own)
      const bytes = join([...before, ack, encode(end)])
      const { frames } = decodeAll(split(bytes, cuts), own)
      expect(frames.map((frame) => frame.type)).toEqual([FRAME.syncAck, FRAME.end])
      expect(frames[0]?.payload.slice(16)).toEqual(own)
    }),
    { numRuns: 500 },
  )
})

test('a hunt goes on behind the offending byte, also when a header came in pieces', () => {
  const sync = encodeSync('sync', new Uint8Array(16).fill(9))
  const bytes = join([Uint8Array.of(0xa7, 0x02, 0x00), sync])
  for (const cut of [1, 2, 3, 4, 5, 40]) {
    const found: number[] = []
    const decoder = new FrameDecoder((type) => found.push(type))
    for (let chunk of split(bytes, [cut])) {
      for (let done = false; !done; chunk = new Uint8Array(0)) {
        try {
          decoder.push(chunk)
          done = true
        } catch {
          decoder.hunt({ type: 'sync' })
        }
      }
    }
    expect(found).toEqual([FRAME.sync])
  }
})

test('a decoder that has failed stays failed', () => {
  const decoder = new FrameDecoder(() => {})
  expect(() => decoder.push(Uint8Array.of(1))).toThrow(MalformedFrame)
  expect(() => decoder.push(encodeSync('sync', new Uint8Array(16)))).toThrow(MalformedFrame)
})

function decodeAll(chunks: Uint8Array[], nonce?: Uint8Array) {
  const frames: Frame[] = []
  const decoder = new FrameDecoder(
    (type, channel, stream, payload) => frames.push({ type, channel, stream, payload }),
    nonce ? { hunt: { type: 'syncAck', nonce } } : {},
  )
  try {
    for (const chunk of chunks) decoder.push(chunk)
    return { frames }
  } catch (error) {
    if (!(error instanceof MalformedFrame)) throw error
    return { frames, reason: error.reason }
  }
}

function encode(frame: Frame): Uint8Array {
  return encodeFrame(frame.type, frame.channel, frame.stream, frame.payload)
}

/** Cuts of the given lengths, again and again; none: one chunk. */
function split(bytes: Uint8Array, cuts: number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  let at = 0
  for (let i = 0; at < bytes.length; i++) {
    const length = cuts.length > 0 ? Math.max(1, cuts[i % cuts.length] ?? 0) : bytes.length
    chunks.push(bytes.slice(at, at + length))
    at += length
  }
  return chunks
}

function join(parts: Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
