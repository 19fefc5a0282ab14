import type { Clock } from '@sandlot/engine'

/** A clock that stands still until it is told otherwise. */
export interface ManualClock extends Clock {
  /** Moves on; what is due is called in order of its time. */
  advance(ms: number): void
}

export function createManualClock(startMs = 1_800_000_000_000): ManualClock {
  let nowMs = startMs
  const timers = new Set<{ readonly dueMs: number; readonly callback: () => void }>()
  return {
    now: () => nowMs,
    after(delayMs, callback) {
      const timer = { dueMs: nowMs + delayMs, callback }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    advance(ms) {
      const untilMs = nowMs + ms
      for (;;) {
        const [next] = [...timers].sort((a, b) => a.dueMs - b.dueMs)
        if (next === undefined || next.dueMs > untilMs) break
        timers.delete(next)
        nowMs = Math.max(nowMs, next.dueMs)
        next.callback()
      }
      nowMs = untilMs
    },
  }
}
