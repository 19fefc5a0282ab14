import { expect, test } from 'vitest'
import { steadyTime } from './steady-time.ts'

const DECADES_MS = 30 * 365 * 86_400_000

function clocks() {
  const at = { wall: 1_000_000, monotonic: 77 }
  const now = steadyTime({ wallMs: () => at.wall, monotonicMs: () => at.monotonic })
  const pass = (ms: number) => {
    at.wall += ms
    at.monotonic += ms
  }
  return { at, now, pass }
}

test('passes as time does', () => {
  const { now, pass } = clocks()
  expect(now()).toBe(1_000_000)
  pass(1_234)
  expect(now()).toBe(1_001_234)
})

test.each([DECADES_MS, -DECADES_MS, 60_000, -60_000])(
  'does not follow a step of %d ms',
  (stepMs) => {
    const { at, now, pass } = clocks()
    at.wall += stepMs
    expect(now()).toBe(1_000_000)
    pass(5_000)
    expect(now()).toBe(1_005_000)
    // Set right again.
    at.wall -= stepMs
    pass(5_000)
    expect(now()).toBe(1_010_000)
  },
)

test.each([1_000, -1_000])('follows %d ms gradually, and never runs backwards', (offMs) => {
  const { at, now, pass } = clocks()
  at.wall += offMs
  let lastMs = now()
  for (let seconds = 0; seconds < 30; seconds++) {
    pass(1_000)
    const readMs = now()
    expect(readMs - lastMs).toBeGreaterThanOrEqual(949)
    expect(readMs - lastMs).toBeLessThanOrEqual(1_051)
    lastMs = readMs
  }
  expect(lastMs).toBe(at.wall)
})
