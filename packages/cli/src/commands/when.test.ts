import { expect, test } from 'vitest'
import { timeOf } from './when.ts'

test.each(['2026-11-30T12:00:00Z', '2026-11-30', '2026-11'])('%s is a time', (text) => {
  expect(timeOf('--since', text)).toBe(text)
})

test('a duration is so long ago', () => {
  const before = Date.now()
  const at = timeOf('--since', '90m') as Date
  expect(at.getTime()).toBeGreaterThanOrEqual(before - 90 * 60_000)
  expect(at.getTime()).toBeLessThanOrEqual(Date.now() - 90 * 60_000)
})

test.each(['yesterday', '7', '7 weeks', '-3d', ''])(
  '%j is refused by the option’s name',
  (text) => {
    expect(() => timeOf('--since', text)).toThrow(/^--since: /)
  },
)
