/**
 * Counts of durations in buckets whose bounds grow by 2 %: quantiles are off by at most 1 %, two
 * sketches of the same values are equal, and a day needs fewer than 1,000 buckets. Values under
 * 0.1 ms count as 0.1 ms.
 */
export interface Sketch {
  count: number
  /** Buckets from the smallest; shorter while no long duration was seen. */
  readonly buckets: number[]
}

const GROWTH = 1.02
const FLOOR_MS = 0.1
const BUCKETS_MAX = 1_200
const LOG_GROWTH = Math.log(GROWTH)

export function emptySketch(): Sketch {
  return { count: 0, buckets: [] }
}

export function addToSketch(sketch: Sketch, valueMs: number): void {
  const bucket = bucketOf(valueMs)
  while (sketch.buckets.length <= bucket) sketch.buckets.push(0)
  sketch.buckets[bucket] = (sketch.buckets[bucket] ?? 0) + 1
  sketch.count++
}

export function bucketOf(valueMs: number): number {
  const scaled = Math.max(0, Math.ceil(Math.log(valueMs / FLOOR_MS) / LOG_GROWTH))
  return Number.isFinite(scaled) ? Math.min(scaled, BUCKETS_MAX - 1) : 0
}

/** The middle of a bucket. */
export function bucketMs(bucket: number): number {
  return bucket === 0 ? 0 : FLOOR_MS * GROWTH ** (bucket - 0.5)
}

/** The value below which the share `q` lies; 0 for an empty sketch. */
export function quantileMs(sketch: Sketch, q: number): number {
  const wanted = Math.max(1, Math.ceil(q * sketch.count))
  let seen = 0
  for (const [bucket, count] of sketch.buckets.entries()) {
    seen += count
    if (seen >= wanted) return bucketMs(bucket)
  }
  return 0
}
