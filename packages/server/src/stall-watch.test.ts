import { expect, test, vi } from 'vitest'
import { watchStalls } from './stall-watch.ts'

test('a pause is told with its length, ordinary beats and lateness are not', () => {
  vi.useFakeTimers()
  try {
    const stalls: number[] = []
    const watch = watchStalls((forMs) => stalls.push(forMs))
    vi.advanceTimersByTime(5_000)
    vi.setSystemTime(Date.now() + 300)
    vi.advanceTimersByTime(1_000)
    expect(stalls).toEqual([])
    vi.setSystemTime(Date.now() + 20_000)
    vi.advanceTimersByTime(1_000)
    expect(stalls).toEqual([20_000])
    watch[Symbol.dispose]()
    vi.setSystemTime(Date.now() + 20_000)
    vi.advanceTimersByTime(1_000)
    expect(stalls).toHaveLength(1)
  } finally {
    vi.useRealTimers()
  }
})
