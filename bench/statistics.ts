/** The q-quantile, interpolated between neighbours. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const position = (sorted.length - 1) * q
  const below = sorted[Math.floor(position)] ?? Number.NaN
  const above = sorted[Math.ceil(position)] ?? Number.NaN
  return below + (above - below) * (position - Math.floor(position))
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5)
}
