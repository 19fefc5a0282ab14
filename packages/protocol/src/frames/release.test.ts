import { expect, test } from 'vitest'
import { FrameDecoder } from './decoder.ts'
import { encodeFrame } from './encode.ts'
import { FRAME, FRAME_LIMITS, type FrameType } from './frame.ts'
import { releasePayload } from './release.ts'

const LARGE = new Uint8Array(FRAME_LIMITS.payload).fill(7)

test('a large data payload that is alone in its buffer is given back', () => {
  const [payload] = decoded(encodeFrame(FRAME.data, 1, 5, LARGE), 20_000)
  expect(payload).toEqual(LARGE)
  if (payload) releasePayload(payload)
  expect(payload).toHaveLength('transfer' in ArrayBuffer.prototype ? 0 : LARGE.length)
})

test.each([
  ['one that lies in a chunk with others', FRAME.data, LARGE, Number.POSITIVE_INFINITY],
  ['a small one', FRAME.data, LARGE.subarray(0, 1_000), 500],
  ['one that is no data', FRAME.event, LARGE, 20_000],
] as const)('%s stays', (_, type, content, cut) => {
  const frame = encodeFrame(type, 1, 5, content)
  const two = new Uint8Array(2 * frame.length)
  two.set(frame)
  two.set(frame, frame.length)
  for (const payload of decoded(two, cut)) {
    releasePayload(payload)
    expect(payload).toEqual(content)
  }
})

test('bytes that only look alike from outside stay', () => {
  const own = new Uint8Array(LARGE.length + FRAME_LIMITS.overhead).fill(1)
  const view = own.subarray(FRAME_LIMITS.header, own.length - 1)
  releasePayload(view)
  expect(view).toHaveLength(LARGE.length)
})

function decoded(bytes: Uint8Array, cut: number): Uint8Array[] {
  const payloads: Uint8Array[] = []
  const take = (_type: FrameType, _channel: number, _stream: number, payload: Uint8Array) =>
    payloads.push(payload)
  const decoder = new FrameDecoder(take)
  for (let start = 0; start < bytes.length; start += cut) {
    decoder.push(bytes.slice(start, start + cut))
  }
  return payloads
}
