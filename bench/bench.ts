import type { Image } from '@sandlot/runtime'
import type { Measured } from './figure.ts'

export interface BenchContext {
  /** How long measuring may take; starting and cleaning up come on top. Milliseconds. */
  readonly budgetMs: number
  /** Aborted by Ctrl-C, or when the bench overran by far. */
  readonly signal: AbortSignal
  /** What must be gone when the bench ends, however it ends. */
  readonly scope: AsyncDisposableStack
  /** Debian with Python, one layer; built once and kept in the cache. */
  image(): Promise<Image>
  /** News for a person, on stderr. */
  note(line: string): void
}

/** One subject to be measured; it gives one figure or several. */
export interface Bench {
  readonly name: string
  readonly about: string
  run(context: BenchContext): Promise<readonly Measured[]>
}
