import fc from 'fast-check'
import { expect, test } from 'vitest'
import { share } from './share.ts'

test.each([
  ['all there is room for', [{ wanted: 3, bytes: 10 }], { bytes: 1_000, count: 9 }, [3]],
  ['as many as fit', [{ wanted: 30, bytes: 10 }], { bytes: 55, count: 9 }, [5]],
  ['as many as are allowed', [{ wanted: 30, bytes: 10 }], { bytes: 550, count: 9 }, [9]],
  [
    'one of each in turn, and what one does not want to the other',
    [
      { wanted: 2, bytes: 10 },
      { wanted: 50, bytes: 30 },
    ],
    { bytes: 200, count: 99 },
    [2, 6],
  ],
  [
    'small ones where large ones do not fit',
    [
      { wanted: 50, bytes: 10 },
      { wanted: 50, bytes: 1_000 },
      { wanted: 50, bytes: Number.POSITIVE_INFINITY },
    ],
    { bytes: 100, count: 99 },
    [10, 0, 0],
  ],
  ['nothing of nothing', [{ wanted: 1, bytes: 10 }], { bytes: 0, count: 9 }, [0]],
  ['nothing where others have all', [{ wanted: 1, bytes: 10 }], { bytes: 99, count: -3 }, [0]],
])('%s', (_, wishes, bounds, given) => {
  expect(share(wishes, bounds)).toEqual(given)
})

test('never more than was wished or than there is', () => {
  const wish = fc.record({ wanted: fc.nat(40), bytes: fc.integer({ min: 1, max: 100 }) })
  fc.assert(
    fc.property(
      fc.array(wish, { maxLength: 6 }),
      fc.nat(2_000),
      fc.nat(60),
      (wishes, bytes, count) => {
        const given = share(wishes, { bytes, count })
        const used = given.reduce((sum, n, index) => sum + n * (wishes[index]?.bytes ?? 0), 0)
        expect(used).toBeLessThanOrEqual(bytes)
        expect(given.reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(count)
        for (const [index, n] of given.entries()) {
          expect(n).toBeLessThanOrEqual(wishes[index]?.wanted ?? 0)
        }
      },
    ),
  )
})
