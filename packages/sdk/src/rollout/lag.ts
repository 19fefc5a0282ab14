/** How late this process's event loop runs: time that is not the policy's. */

const BEAT_MS = 50

export interface LagMeter {
  /** Milliseconds of lag since the start, monotonic. */
  total(): number
  stop(): void
}

export function startLagMeter(): LagMeter {
  let totalMs = 0
  let expected = performance.now() + BEAT_MS
  const timer = setInterval(() => {
    const now = performance.now()
    if (now > expected) totalMs += now - expected
    expected = now + BEAT_MS
  }, BEAT_MS)
  timer.unref?.()
  return {
    total: () => totalMs + Math.max(0, performance.now() - expected),
    stop: () => clearInterval(timer),
  }
}
