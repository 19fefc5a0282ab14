import { toSandlotError } from '../failure.ts'
import { SERVER_LIMITS } from '../limits.ts'

export interface LoggedWork<T> {
  readonly signal: AbortSignal
  readonly run: (wait: { signal: AbortSignal; onLog: (line: string) => void }) => Promise<T>
  /** The fields of the last line beside its kind. */
  readonly done: (value: T) => object
}

/**
 * The answer of a route that works for long: a line of log each as it comes, and a last one that says how it ended, so that
 * a failure after minutes has its error in the same place. A reader that is slow misses lines and is told how many. Who stops
 * reading ends the work.
 */
export async function* logLines<T>({ signal, run, done }: LoggedWork<T>): AsyncGenerator<unknown> {
  const lines: string[] = []
  let wake = Promise.withResolvers<void>()
  let dropped = 0
  const stop = new AbortController()
  const work = run({
    signal: AbortSignal.any([signal, stop.signal]),
    onLog: (line) => {
      if (lines.length < SERVER_LIMITS.buildLinesWaiting) lines.push(line)
      else dropped += 1
      wake.resolve()
    },
  })
  let over = false
  work
    .catch(() => {})
    .finally(() => {
      over = true
      wake.resolve()
    })
  try {
    for (;;) {
      for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
        yield { kind: 'log', line }
      }
      if (dropped > 0) yield { kind: 'log', line: `(${dropped} lines were not read in time)` }
      dropped = 0
      if (over && lines.length === 0) break
      await wake.promise
      wake = Promise.withResolvers()
    }
    yield await work.then(
      (value) => ({ kind: 'done', ...done(value) }),
      (error) => ({ kind: 'error', error: toSandlotError(error).toEnvelope().error }),
    )
  } finally {
    stop.abort()
  }
}
