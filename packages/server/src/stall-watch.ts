/** How late a beat may come before this process counts as having stood still: far above what load alone does. */
const STALL_MS = 500
const BEAT_MS = 200

/**
 * Notices that this process stood still (stopped by a signal, its machine paused, its event loop held up): `onStall` gets how long. It
 * comes before any deadline that ran out meanwhile, as its own timer is the oldest one. `now` is monotonic: a clock that is set is no stall.
 */
export function watchStalls(
  onStall: (forMs: number) => void,
  now: () => number = () => performance.now(),
): Disposable {
  let lastMs = now()
  const timer = setInterval(() => {
    const nowMs = now()
    const lateMs = nowMs - lastMs - BEAT_MS
    lastMs = nowMs
    if (lateMs >= STALL_MS) onStall(lateMs)
  }, BEAT_MS)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
