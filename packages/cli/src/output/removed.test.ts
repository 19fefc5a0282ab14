import { expect, test } from 'vitest'
import { counted, describeRemoved } from './removed.ts'

test.each([
  [{ removed: ['a', 'b'], freedBytes: 2_048 }, 'removed 2 images, freed 2 KiB'],
  [
    { removed: ['a'], freedBytes: 0 },
    'removed 1 image, freed nothing: images that stay have the same layers',
  ],
  [{ removed: [], freedBytes: 0 }, 'nothing was there to remove'],
])('%j', (answer, text) => {
  expect(describeRemoved(answer, counted(answer.removed.length, 'image', 'images'))).toBe(text)
})
