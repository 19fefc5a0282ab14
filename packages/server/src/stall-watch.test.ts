import { expect, test, vi } from 'vitest'
import { watchStalls } from './stall-watch.ts'

test('a pause is told with its length, ordinary beats and lateness are not', () => {
  vi.useFakeTimers()
  try {
    const stalls: number[] = []
    let stoodMs = 0
    const watch = watchStalls(
      (forMs) => stalls.push(forMs),
      () => performance.now() + stoodMs,
    )
    vi.advanceTimersByTime(5_000)
    stoodMs += 300
    vi.advanceTimersByTime(1_000)
    expect(stalls).toEqual([])
    stoodMs += 20_000
    vi.advanceTimersByTime(1_000)
    expect(stalls).toEqual([20_000])
    vi.setSystemTime(Date.now() + 1e12)
    vi.advanceTimersByTime(1_000)
    expect(stalls).toHaveLength(1)
    watch[Symbol.dispose]()
    stoodMs += 20_000
    vi.advanceTimersByTime(1_000)
    expect(stalls).toHaveLength(1)
  } finally {
    vi.useRealTimers()
  }
})
