import { loadavg } from 'node:os'
import type { BenchContext, NamedBench } from './bench.ts'
import { type Figure, figureOf } from './figure.ts'
import { benchImage } from './image.ts'
import { describeMachine } from './machine.ts'
import type { Report } from './report.ts'

export interface RunOptions {
  readonly benches: readonly NamedBench[]
  readonly samples: boolean
  /** Four times the time for each bench. */
  readonly long: boolean
  readonly signal: AbortSignal
  readonly note: (line: string) => void
}

const BUDGET_MS = 20_000
const LONG_FACTOR = 4
/** Beyond its budget a bench starts, ends and finishes what it began; one that takes so long hangs. */
const OVERRUN_MS = 120_000

/** Runs the benches one after another. One that fails is reported and the next one goes on. */
export async function runBenches(options: RunOptions): Promise<Report> {
  const machine = await describeMachine()
  const figures: Figure[] = []
  const failures: { name: string; why: string }[] = []
  const image = once(() => benchImage(options.note))
  for (const bench of options.benches) {
    if (options.signal.aborted) break
    const load = loadavg()[0] ?? 0
    const startedMs = performance.now()
    try {
      const measured = await runOne(bench, options, image)
      figures.push(...measured.map((each) => figureOf(each, load, options.samples)))
    } catch (error) {
      failures.push({ name: bench.name, why: reasonOf(error) })
    }
    const seconds = (performance.now() - startedMs) / 1000
    options.note(`${bench.name}: ${seconds.toFixed(1)} s`)
  }
  return { machine, figures, failures }
}

async function runOne(named: NamedBench, options: RunOptions, image: BenchContext['image']) {
  const budgetMs = BUDGET_MS * (options.long ? LONG_FACTOR : 1)
  const overran = AbortSignal.timeout(named.limitMs ?? budgetMs + OVERRUN_MS)
  const broken = new AbortController()
  const fail = (error: Error) => broken.abort(error)
  const signal = AbortSignal.any([options.signal, overran, broken.signal])
  await using scope = new AsyncDisposableStack()
  const bench = await named.load()
  return await bench({ budgetMs, signal, fail, scope, image, note: options.note })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}
