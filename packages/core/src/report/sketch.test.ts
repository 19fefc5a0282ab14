import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addToSketch, emptySketch, quantileMs } from './sketch.ts'

test('quantiles are within 1 % of the exact ones', () => {
  const values = fc.array(fc.double({ min: 0.2, max: 86_400_000, noNaN: true }), { minLength: 1 })
  fc.assert(
    fc.property(values, fc.double({ min: 0.01, max: 1, noNaN: true }), (drawn, q) => {
      const sketch = emptySketch()
      for (const value of drawn) addToSketch(sketch, value)
      const sorted = drawn.toSorted((a, b) => a - b)
      const exact = sorted[Math.max(1, Math.ceil(q * sorted.length)) - 1] ?? 0
      expect(Math.abs(quantileMs(sketch, q) / exact - 1)).toBeLessThan(0.011)
    }),
  )
})

test.each([0, 0.05, -1, Number.NaN])('%d ms counts as nothing', (value) => {
  const sketch = emptySketch()
  addToSketch(sketch, value)
  expect(quantileMs(sketch, 0.5)).toBe(0)
  expect(sketch.count).toBe(1)
})

test('however long, it stays small', () => {
  const sketch = emptySketch()
  addToSketch(sketch, Number.MAX_SAFE_INTEGER)
  expect(sketch.buckets.length).toBeLessThanOrEqual(2_500)
})
