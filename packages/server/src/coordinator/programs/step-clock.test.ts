import { expect, test } from 'vitest'
import { createManualClock } from '../simulated/clock.ts'
import { createStepClock } from './step-clock.ts'

test('the time of a step stands while its model is called', () => {
  const clock = createManualClock()
  const time = createStepClock(clock)
  let due = 0
  time.start(100, () => due++)
  clock.advance(60)
  time.stand()
  clock.advance(10_000)
  time.goOn()
  clock.advance(39)
  expect(due).toBe(0)
  clock.advance(1)
  expect(due).toBe(1)
})

test('a step that begins while a call is open waits for its end, and one that is over is never late', () => {
  const clock = createManualClock()
  const time = createStepClock(clock)
  let due = 0
  time.stand()
  const step = time.start(100, () => due++)
  clock.advance(1_000)
  time.goOn()
  clock.advance(99)
  step[Symbol.dispose]()
  clock.advance(1_000)
  time.stand()
  time.goOn()
  clock.advance(1_000)
  expect(due).toBe(0)
})
