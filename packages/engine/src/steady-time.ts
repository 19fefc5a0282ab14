/** A time that is set by more than this is not followed. */
const STEP_MS = 5_000
/** Of the time that passes: so much faster or slower runs a time that is brought in line. */
const SLEW_SHARE = 0.05

export interface TimeSources {
  /** May step, in both directions. Milliseconds since the epoch. */
  readonly wallMs: () => number
  /** Never steps. Milliseconds since anything. */
  readonly monotonicMs: () => number
}

/**
 * The time of day without its steps: differences of two readings are always time that passed. It begins with the wall clock, and
 * follows it where that is off by a few seconds, gradually. A clock that is set by more (by hand, by a first synchronisation, by a machine that
 * slept) is not followed until the process is started again: nothing that runs is taken for old, and nothing that is old for new.
 */
export function steadyTime({ wallMs, monotonicMs }: TimeSources): () => number {
  let lastMs = monotonicMs()
  let nowMs = wallMs()
  return () => {
    const readMs = monotonicMs()
    const passedMs = Math.max(0, readMs - lastMs)
    lastMs = readMs
    const offMs = wallMs() - (nowMs + passedMs)
    const slewMs = SLEW_SHARE * passedMs
    const follow = Math.abs(offMs) <= STEP_MS
    nowMs += passedMs + (follow ? Math.min(slewMs, Math.max(-slewMs, offMs)) : 0)
    return Math.floor(nowMs)
  }
}
