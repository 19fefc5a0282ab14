import { uptime } from 'node:os'
import { steadyTime } from './steady-time.ts'

/** Where the engine takes its time from, so that a test can be its master. */
export interface Clock {
  /** Milliseconds since the epoch. It never steps within a process (`steady-time.ts`). */
  now(): number
  /** When the machine began to run, by this clock. Absent where that is not known. */
  machineStartedMs?(): number
  /** Calls back once, not before `delayMs` have passed. Returns what cancels it; cancelling twice is fine. */
  after(delayMs: number, callback: () => void): () => void
}

/** Node cannot wait longer than this in one timer: about 24 days. */
const DELAY_MS_MAX = 2 ** 31 - 1

const now = steadyTime({ wallMs: () => Date.now(), monotonicMs: () => performance.now() })

/** The machine's clock. Its timers do not keep a process alive. */
export const systemClock: Clock = {
  now,
  machineStartedMs: () => now() - uptime() * 1_000,
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
