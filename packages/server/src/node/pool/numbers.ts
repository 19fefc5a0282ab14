import type { TakeCounts } from './shelf.ts'

interface Levels {
  readonly target: number
  readonly ready: number
  readonly starting: number
}

/** What waits of a kind, and what came of it so far. */
export interface PoolNumbers extends Levels, Readonly<TakeCounts> {}

export function numbersOf(shelves: readonly Levels[], counts: TakeCounts): PoolNumbers {
  const sum = (of: (shelf: Levels) => number) => shelves.reduce((all, each) => all + of(each), 0)
  return {
    target: sum(({ target }) => target),
    ready: sum(({ ready }) => ready),
    starting: sum(({ starting }) => starting),
    ...counts,
  }
}
