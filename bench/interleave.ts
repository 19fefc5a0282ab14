import type { BenchContext } from './bench.ts'

export interface Rounds {
  readonly max: number
  /** Rounds that are run and not counted. Default 1. */
  readonly warmUp?: number
  /** Share of the bench's time that these rounds may take. Default 1. */
  readonly share?: number
}

/**
 * Measures each side in turn, A B C A B C …, so that whatever else the machine does falls on all of them. Ends after
 * `max` rounds, or when the time is used up and three rounds were counted.
 */
export async function interleave<Side extends string>(
  context: BenchContext,
  rounds: Rounds,
  sides: Readonly<Record<Side, () => Promise<number>>>,
): Promise<Record<Side, number[]>> {
  const names = Object.keys(sides) as Side[]
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<
    Side,
    number[]
  >
  const { max, warmUp = 1, share = 1 } = rounds
  const endMs = performance.now() + context.budgetMs * share
  for (let round = -warmUp; round < max; round++) {
    if (round >= ROUNDS_MIN && performance.now() > endMs) break
    for (const name of names) {
      context.signal.throwIfAborted()
      const sample = await sides[name]()
      if (round >= 0) samples[name].push(sample)
    }
  }
  return samples
}

const ROUNDS_MIN = 3

/** How long the work took. Milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

/** Does `total` pieces of work, `concurrency` at a time. Returns how many were done each second. */
export async function ratePerSecond(
  options: { readonly total: number; readonly concurrency: number },
  work: (index: number) => Promise<unknown>,
): Promise<number> {
  const { total, concurrency } = options
  let next = 0
  const lane = async () => {
    while (next < total) await work(next++)
  }
  const elapsedMs = await timed(() => Promise.all(Array.from({ length: concurrency }, lane)))
  return total / (elapsedMs / 1000)
}
