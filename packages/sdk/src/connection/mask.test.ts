import { expect, test } from 'vitest'
import { maskOptions } from './mask.ts'

test.each([
  'http://127.0.0.1:7390',
  'http://127.8.9.1:80',
  'http://localhost:7390',
  'http://[::1]:7390',
  'https://sandlot.example.org',
])('%s: nobody sees the content on its way, so the mask is zeros', (url) => {
  const mask = new Uint8Array([1, 2, 3, 4])
  maskOptions(url).generateMask?.(mask)
  expect(mask).toEqual(new Uint8Array(4))
})

test.each([
  'http://sandlot.example.org',
  'http://10.0.0.7:7390',
  'http://127.0.0.1.example.org',
  'http://localhost.example.org',
])('%s: an intermediary may see it, so the mask is drawn', (url) => {
  expect(maskOptions(url)).toEqual({})
})
