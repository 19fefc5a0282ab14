/** How late this process's event loop runs: time that is not the policy's. */

const BEAT_MS = 50
/** A timer is a little late on an idle machine too. */
const TOLERATED_MS = 10

export interface LagMeter {
  /** Milliseconds of lag since the start, monotonic. */
  total(): number
  stop(): void
}

export function startLagMeter(): LagMeter {
  let totalMs = 0
  let expectedMs = performance.now() + BEAT_MS
  const lateMs = () => {
    const late = performance.now() - expectedMs
    return late > TOLERATED_MS ? late : 0
  }
  const timer = setInterval(() => {
    totalMs += lateMs()
    expectedMs = performance.now() + BEAT_MS
  }, BEAT_MS)
  timer.unref?.()
  return {
    total: () => totalMs + lateMs(),
    stop: () => clearInterval(timer),
  }
}
