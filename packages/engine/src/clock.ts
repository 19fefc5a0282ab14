/** Where the engine takes its time from, so that a test can be its master. */
export interface Clock {
  /** Milliseconds since the epoch. May step when the machine's clock is set; leases and TTLs then shift with it. */
  now(): number
  /** Calls back once, not before `delayMs` have passed. Returns what cancels it; cancelling twice is fine. */
  after(delayMs: number, callback: () => void): () => void
}

/** Node cannot wait longer than this in one timer: about 24 days. */
const DELAY_MS_MAX = 2 ** 31 - 1

/** The machine's clock. Its timers do not keep a process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, callback) {
    let timer: NodeJS.Timeout
    const arm = (leftMs: number) => {
      const stepMs = Math.min(Math.max(leftMs, 0), DELAY_MS_MAX)
      timer = setTimeout(() => {
        if (leftMs > stepMs) arm(leftMs - stepMs)
        else callback()
      }, stepMs)
      timer.unref()
    }
    arm(Math.ceil(delayMs))
    return () => clearTimeout(timer)
  },
}
