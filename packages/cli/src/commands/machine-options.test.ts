import { expect, test } from 'vitest'
import { gpuOf, networkChoiceOf } from './machine-options.ts'

test.each([
  ['H100', 'H100'],
  ['any', 'any'],
  ['RTX 4090', 'RTX 4090'],
  ['2', { count: 2 }],
  ['H100:2', { type: 'H100', count: 2 }],
  ['any:8', { type: 'any', count: 8 }],
])('--gpu %s', (text, wanted) => {
  expect(gpuOf(text)).toEqual(wanted)
})

test.each(['', ':', 'H100:', 'H100:two', 'a:b:1', '-1', '-1:2'])('--gpu %j names none', (text) => {
  expect(() => gpuOf(text)).toThrow('names no GPU')
})

test('an open network stands alone', () => {
  expect(networkChoiceOf({ openNetwork: true })).toBe('open')
  expect(networkChoiceOf({ packages: true, allow: ['a.example'] })).toEqual({
    allow: ['a.example'],
    packages: true,
  })
  expect(networkChoiceOf({})).toBeUndefined()
  expect(() => networkChoiceOf({ openNetwork: true, packages: true })).toThrow('--open-network')
})
