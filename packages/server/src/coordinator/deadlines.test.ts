import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openDeadlines } from './deadlines.ts'
import { createManualClock } from './simulated/clock.ts'

test('each key is due once, at its last deadline, in order of time', () => {
  const change = fc.record({ key: fc.nat(9), dueMs: fc.option(fc.integer({ min: 1, max: 100 })) })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 300 }), (changes) => {
      const clock = createManualClock(0)
      const deadlines = openDeadlines(clock)
      const due: [number, number][] = []
      const keys = Array.from({ length: 10 }, (_, key) => ({
        due: () => due.push([key, clock.now()]),
      }))
      const expected = new Map<number, number>()
      for (const { key, dueMs } of changes) {
        deadlines.set(keys[key] as (typeof keys)[number], dueMs ?? undefined)
        if (dueMs === null) expected.delete(key)
        else expected.set(key, dueMs)
      }
      clock.advance(1_000)
      expect(new Map(due)).toEqual(expected)
      expect(due).toHaveLength(expected.size)
      expect(due.map(([, atMs]) => atMs)).toEqual([...expected.values()].sort((a, b) => a - b))
    }),
  )
})

test('one timer is kept, and none after close', () => {
  let timers = 0
  const deadlines = openDeadlines({
    now: () => 0,
    after() {
      timers += 1
      return () => {
        timers -= 1
      }
    },
  })
  for (let dueMs = 100; dueMs > 0; dueMs--) deadlines.set({ due() {} }, dueMs)
  expect(timers).toBe(1)
  deadlines.close()
  expect(timers).toBe(0)
})
