import type { Image } from '@sandlot/runtime'
import type { Measured } from './figure.ts'

export interface BenchContext {
  /** How long measuring may take; starting and cleaning up come on top. Milliseconds. */
  readonly budgetMs: number
  /** Aborted by Ctrl-C, by `fail`, or when the bench overran by far. */
  readonly signal: AbortSignal
  /** Something that the bench stands on broke: it ends with this error. */
  readonly fail: (error: Error) => void
  /** What must be gone when the bench ends, however it ends. */
  readonly scope: AsyncDisposableStack
  /** Debian with Python, one layer; built once and kept in the cache. */
  image(): Promise<Image>
  /** News for a person, on stderr. */
  note(line: string): void
}

/** Measures one subject; gives one figure or several. */
export type Bench = (context: BenchContext) => Promise<readonly Measured[]>

export interface NamedBench {
  readonly name: string
  /** Takes so long that it is run with `--long` alone, or by its name. */
  readonly long?: boolean
  /** After so long it hangs, and is ended. Default: two minutes beyond its budget. Milliseconds. */
  readonly limitMs?: number
  readonly about: string
  /** Loaded when it runs, so that the parts of the product that it needs are in no other bench's memory. */
  readonly load: () => Promise<Bench>
}
