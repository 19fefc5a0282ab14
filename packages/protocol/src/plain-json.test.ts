import { expect, test } from 'vitest'
import { plainJson } from './plain-json.ts'

test('plain data has its JSON', () => {
  expect(plainJson({ a: [1, 'x', null, true], b: undefined }, 'it')).toBe('{"a":[1,"x",null,true]}')
  expect(plainJson(undefined, 'it')).toBe(undefined)
  const shared = { a: 1 }
  expect(plainJson([shared, shared], 'it')).toBe('[{"a":1},{"a":1}]')
})

const circle: Record<string, unknown> = {}
circle.self = circle

test.each([
  [() => 1, 'it is a function'],
  [{ config: { callback: () => 1 } }, 'it.config.callback is a function'],
  [[1, undefined], 'it[1] is undefined'],
  [{ at: new Date() }, 'it.at is of class Date'],
  [{ all: new Map() }, 'it.all is of class Map'],
  [Number.NaN, 'it is NaN'],
  [10n, 'it is a bigint'],
  [Symbol('a'), 'it is a symbol'],
  [circle, 'it.self contains itself'],
  [new Uint8Array(1), 'it is of class Uint8Array'],
])('%o is refused by its place', (value, message) => {
  expect(() => plainJson(value, 'it')).toThrow(message)
})
