import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DAY_MS, DayBook, HOUR_MS } from './day-book.ts'
import { addSum, cutStretch, type MeteredStretch, noSum } from './metered.ts'

const stretch = (more: Partial<MeteredStretch> = {}): MeteredStretch => ({
  ...{ key: 'sb_a/0', fromMs: 0, toMs: HOUR_MS, project: 'p', kind: 'sandbox', run: null },
  ...{ retry: false, sandboxes: 1, ms: HOUR_MS, cpuMs: HOUR_MS / 10, memoryMibMs: 20 * HOUR_MS },
  ...{ diskMibMs: 0, gpuMs: 0, usedCpuMs: 77, networkBytes: 1_001, micros: 33 },
  ...more,
})

test('what is cut is together what it was, to the last millionth', () => {
  const whole = fc.integer({ min: 0, max: 1e9 })
  fc.assert(
    fc.property(whole, whole, whole, whole, (fromMs, lastsMs, usedCpuMs, micros) => {
      const given = stretch({ fromMs, toMs: fromMs + lastsMs, ms: lastsMs, usedCpuMs, micros })
      const parts = cutStretch(given, HOUR_MS)
      const sum = noSum()
      for (const part of parts) addSum(sum, part)
      expect(sum).toMatchObject({ sandboxes: 1, usedCpuMs, micros, networkBytes: 1_001 })
      expect(sum.ms).toBeCloseTo(lastsMs, 3)
      expect(parts[0]?.fromMs).toBe(given.fromMs)
      expect(parts.at(-1)?.toMs).toBe(given.toMs)
      for (const part of parts) {
        expect(Math.floor(part.fromMs / HOUR_MS)).toBe(
          Math.floor(Math.max(part.fromMs, part.toMs - 1) / HOUR_MS),
        )
        expect(Number.isInteger(part.micros)).toBe(true)
      }
    }),
  )
})

test('one without an end of its own is one part, and what has no price has none', () => {
  const parts = cutStretch(stretch({ toMs: 0, ms: 0, micros: null }), DAY_MS)
  expect(parts).toHaveLength(1)
  expect(parts[0]).toMatchObject({ sandboxes: 1, micros: null, usedCpuMs: 77 })
})

test('a book has a line for each hour and purpose, and is read back as it was', () => {
  const book = new DayBook()
  book.add(stretch({ fromMs: HOUR_MS / 2, toMs: 1.5 * HOUR_MS }))
  book.add(stretch({ kind: 'episode', run: 'r', retry: true }))
  const again = DayBook.load(JSON.parse(JSON.stringify(book.save())))
  for (const each of [book, again]) {
    expect([...each.lines()].map(({ hourMs, run, sum }) => [hourMs, run, sum.ms])).toEqual([
      [0, null, HOUR_MS / 2],
      [HOUR_MS, null, HOUR_MS / 2],
      [0, 'r', HOUR_MS],
    ])
  }
})
