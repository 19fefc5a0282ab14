/** The live line of several runs together, from what the daemon says of each. */
import type { Run } from 'sandlot'
import { countsOf } from '../commands/live-counts.ts'
import { pause } from '../commands/pause.ts'
import { describeProgress, startProgressLine } from '../output/progress.ts'

const LOOK_EVERY_MS = 500

/** What is asked of a run. */
export type Watched = Pick<Run, 'view'>

export interface WatchOptions {
  /** Tasks of all runs: those that are not submitted yet are queued too. */
  readonly tasks: number
  readonly signal: AbortSignal
}

/** Draws until `work` is over; returns what it comes to. */
export async function watchRuns<T>(
  runs: readonly Watched[],
  work: Promise<T>,
  { tasks, signal }: WatchOptions,
): Promise<T> {
  using line = startProgressLine()
  const startedMs = performance.now()
  const over = new AbortController()
  const stop = AbortSignal.any([signal, over.signal])
  const looking = (async () => {
    for (;;) {
      const views = await Promise.all(runs.map((run) => run.view({ signal: stop })))
      line.update(describeProgress(countsOf(views, tasks, performance.now() - startedMs)))
      await pause(LOOK_EVERY_MS, stop)
    }
    // What goes wrong with a run, its results say.
  })().catch(() => undefined)
  try {
    return await work
  } finally {
    over.abort()
    await looking
  }
}
