import { describe, expect, test } from 'vitest'
import vectors from '../../../../native/frames/vectors.json' with { type: 'json' }
import { FrameDecoder } from './decoder.ts'
import { encodeFrame } from './encode.ts'
import { FRAME, type FrameName, MalformedFrame } from './frame.ts'
import type { Prey } from './hunt.ts'

type Piece = string | { repeat: string; times: number }
interface VectorFrame {
  type: string
  channel: number
  stream: number
  payload: Piece[]
}

const CUTS = [1, 2, 7, 13, 4_096, 65_536, Number.MAX_SAFE_INTEGER]

describe('golden bytes that the Rust codec is tested with too', () => {
  test.each(vectors.frames)('frames: $name', ({ bytes, frames }) => {
    for (const cut of CUTS)
      expect(decode(unpack(bytes), cut)).toEqual({ frames: frames.map(plain) })
  })

  test.each(vectors.malformed)('malformed: $name', ({ bytes, frames, reason }) => {
    for (const cut of CUTS) {
      expect(decode(unpack(bytes), cut)).toEqual({ frames: frames.map(plain), reason })
    }
  })

  test.each(vectors.hunts)('hunts: $name', (vector) => {
    const prey: Prey =
      vector.prey === 'sync'
        ? { type: 'sync' }
        : { type: 'syncAck', nonce: fromHex((vector as { nonce?: string }).nonce ?? '') }
    for (const cut of CUTS) {
      expect(decode(unpack(vector.bytes), cut, { prey })).toEqual({
        frames: vector.frames.map(plain),
      })
    }
  })

  test.each(vectors.recoveries)('recoveries: $name', ({ bytes, frames }) => {
    for (const cut of CUTS) {
      const got = decode(unpack(bytes), cut, { recovers: true })
      expect(got).toEqual({ frames: frames.map(plain) })
    }
  })
})

test.each(vectors.frames.filter(({ name }) => !/padding|not finished|half/.test(name)))(
  'encodes: $name',
  ({ bytes, frames }) => {
    expect(joined(frames.map((frame) => encodeFrame(...args(frame as VectorFrame))))).toEqual(
      unpack(bytes),
    )
  },
)

function decode(
  bytes: Uint8Array,
  cut: number,
  options: { prey?: Prey; recovers?: boolean } = {},
): { frames: unknown[]; reason?: string } {
  const frames: unknown[] = []
  const decoder = new FrameDecoder(
    (type, channel, stream, payload) => {
      frames.push({ type, channel, stream, payload: toHex(payload) })
    },
    options.prey ? { hunt: options.prey } : {},
  )
  for (let at = 0; at < bytes.length; at += cut) {
    let chunk = bytes.slice(at, at + cut)
    for (;;) {
      try {
        decoder.push(chunk)
        break
      } catch (error) {
        if (!(error instanceof MalformedFrame)) throw error
        if (!options.recovers) return { frames, reason: error.reason }
        decoder.hunt({ type: 'sync' })
        chunk = new Uint8Array(0)
      }
    }
  }
  return { frames }
}

function args(frame: VectorFrame): Parameters<typeof encodeFrame> {
  return [FRAME[frame.type as FrameName], frame.channel, frame.stream, unpack(frame.payload)]
}

function plain(frame: { type: string; channel: number; stream: number; payload: unknown[] }) {
  const [type, channel, stream, payload] = args(frame as VectorFrame)
  return { type, channel, stream, payload: toHex(payload) }
}

function unpack(pieces: readonly unknown[]): Uint8Array {
  return joined(
    (pieces as Piece[]).map((piece) => {
      if (typeof piece === 'string') return fromHex(piece)
      const unit = fromHex(piece.repeat)
      const bytes = new Uint8Array(unit.length * piece.times)
      for (let i = 0; i < piece.times; i++) bytes.set(unit, i * unit.length)
      return bytes
    }),
  )
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
