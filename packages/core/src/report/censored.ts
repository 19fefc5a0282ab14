import { bucketMs, bucketOf, type Sketch } from './sketch.ts'

export interface Observed {
  /** How long what is over took. */
  readonly ended: Sketch
  /** How long what was stopped before its end had gone on by then. */
  readonly stopped: Sketch
  /** How long what still goes on has. */
  readonly running: readonly number[]
}

/**
 * The time within which the share `q` is over, by the estimate of Kaplan and Meier: whatever has not ended is known to take longer
 * than it has so far. Of what ended alone the slow would be missing, and the quantile of a run that has just begun would be that of
 * its fastest. null: too few have ended to say.
 */
export function censoredQuantileMs(
  { ended, stopped, running }: Observed,
  q: number,
): number | null {
  const censored = [...stopped.buckets]
  for (const ms of running) {
    const bucket = bucketOf(ms)
    while (censored.length <= bucket) censored.push(0)
    censored[bucket] = (censored[bucket] ?? 0) + 1
  }
  let left = ended.count + stopped.count + running.length
  let share = 1
  for (const [bucket, count] of ended.buckets.entries()) {
    if (count > 0) share *= 1 - count / left
    if (1 - share >= q - ROUNDING) return bucketMs(bucket)
    left -= count + (censored[bucket] ?? 0)
  }
  return null
}

/** A product of many shares is off by so much. */
const ROUNDING = 1e-9
