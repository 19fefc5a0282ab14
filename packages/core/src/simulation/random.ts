/** A stream of random draws that its seed decides (sfc32). */
export interface Random {
  /** In [0, 1). */
  next(): number
  /** Whole, from 0 to below `bound`. */
  below(bound: number): number
  between(low: number, high: number): number
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
  /** Heavy-tailed around a median: lognormal. */
  spread(median: number, sigma: number): number
}

export function createRandom(seed: number): Random {
  let a = seed >>> 0
  let b = 0x9e3779b9
  let c = 0x243f6a88
  let counter = 1

  function next(): number {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    return (sum >>> 0) / 4_294_967_296
  }
  for (let i = 0; i < 16; i++) next()

  const between = (low: number, high: number) => low + next() * (high - low)
  return {
    next,
    between,
    below: (bound) => Math.floor(next() * bound),
    chance: (probability) => next() < probability,
    pick: (items) => items[Math.floor(next() * items.length)] as (typeof items)[number],
    spread(median, sigma) {
      const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
      return median * Math.exp(sigma * normal)
    },
  }
}
