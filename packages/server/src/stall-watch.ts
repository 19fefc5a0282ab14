/** How late a beat may come before this process counts as having stood still: far above what load alone does. */
const STALL_MS = 500
const BEAT_MS = 200

/**
 * Notices that this process stood still (stopped by a signal, its machine paused or asleep, its event loop held up), or that the
 * machine's clock was set forward: `onStall` gets how long. It comes before any deadline that ran out meanwhile, as its own timer is
 * the oldest one.
 */
export function watchStalls(onStall: (forMs: number) => void): Disposable {
  let lastMs = Date.now()
  const timer = setInterval(() => {
    const nowMs = Date.now()
    const lateMs = nowMs - lastMs - BEAT_MS
    lastMs = nowMs
    if (lateMs >= STALL_MS) onStall(lateMs)
  }, BEAT_MS)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
