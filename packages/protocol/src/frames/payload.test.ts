import { encode } from '@msgpack/msgpack'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { MalformedFrame } from './frame.ts'
import {
  decodePayload,
  encodePayload,
  measureValue,
  PayloadRefused,
  PayloadTooLarge,
} from './payload.ts'

const anyMap = fc.dictionary(
  fc.string({ maxLength: 40 }).filter((key) => key !== '__proto__'),
  fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.integer(),
      fc.maxSafeNat(),
      // A whole number travels as an integer, which knows no -0.
      fc.double({ noNaN: true }).map((value) => value || 0),
      fc.boolean(),
      fc.constant(null),
      fc.string({ maxLength: 300 }),
      fc.uint8Array({ maxLength: 300 }),
      fc.array(tie('value'), { maxLength: 20 }),
      fc.dictionary(
        fc.string().filter((key) => key !== '__proto__'),
        tie('value'),
        {
          maxKeys: 20,
        },
      ),
    ),
  })).value,
  { maxKeys: 8, noNullPrototype: true },
)

test('maps come out as they went in', () => {
  fc.assert(
    fc.property(anyMap, (map) => {
      expect(decodePayload(encodePayload(map).slice())).toEqual(map)
    }),
    { numRuns: 300 },
  )
})

test('every beginning of a value is incomplete, and the value is measured exactly', () => {
  fc.assert(
    fc.property(anyMap, fc.uint8Array({ maxLength: 9 }), (map, tail) => {
      const bytes = encode(map)
      for (let length = 0; length < Math.min(bytes.length, 400); length++) {
        expect(measureValue(bytes.subarray(0, length), 0)).toBeUndefined()
      }
      const longer = new Uint8Array(bytes.length + tail.length)
      longer.set(bytes)
      longer.set(tail, bytes.length)
      expect(measureValue(longer, 0)).toBe(bytes.length)
    }),
    { numRuns: 200 },
  )
})

test('random bytes are a map or malformed', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      bytes[0] = 0x80 | ((bytes[0] ?? 0) & 0x0f)
      try {
        expect(typeof decodePayload(bytes)).toBe('object')
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedFrame)
      }
    }),
    { numRuns: 3_000 },
  )
})

test.each([
  ['a number', [0x01]],
  ['nothing', []],
  ['two values', [0x80, 0x80]],
  ['a key that is a number', [0x81, 0x01, 0x01]],
  ['an extension type', [0x81, 0xa1, 0x61, 0xd4, 0x01, 0x01]],
  ['a claim of 4 billion items', [0x81, 0xa1, 0x61, 0xdd, 0xff, 0xff, 0xff, 0xff]],
  ['arrays that claim more together than there is', [0x81, 0xa1, 0x61, 0x93, 0x93, 0x93, 1, 2, 3]],
  ['nesting without end', [0x81, 0xa1, 0x61, ...new Array(40).fill(0x91), 0xc0]],
  ['the key __proto__', [...encodeProto()]],
])('refuses %s', (_name, bytes) => {
  expect(() => decodePayload(Uint8Array.from(bytes))).toThrow(MalformedFrame)
})

test('undefined is left out, and a map beyond a frame is the sender’s mistake', () => {
  expect(decodePayload(encodePayload({ a: undefined, b: 1 }).slice())).toEqual({ b: 1 })
  expect(() => encodePayload({ a: new Uint8Array(65_536) })).toThrow(PayloadTooLarge)
})

test('a key that the peer would not take is the sender’s mistake, however deep', () => {
  const given = JSON.parse('{"__proto__": 1}') as Record<string, unknown>
  for (const map of [given, { rewards: given }, { list: [{ rewards: given }] }]) {
    expect(() => encodePayload(map)).toThrow(PayloadRefused)
  }
})

function encodeProto(): Uint8Array {
  return Uint8Array.of(0x81, 0xa9, ...new TextEncoder().encode('__proto__'), 0x80)
}
