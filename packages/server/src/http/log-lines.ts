import { toSandlotError } from '../failure.ts'
import { SERVER_LIMITS } from '../limits.ts'

export interface LoggedWait {
  readonly signal: AbortSignal
  /** Takes a line for a person who waits. */
  readonly onLog: (line: string) => void
  /** Takes a line that a program of the work printed. */
  readonly onDetail: (line: string) => void
  /** Takes a line of another kind, which no reader misses. */
  readonly onLine: (line: { readonly kind: string }) => void
}

export interface LoggedWork<T> {
  readonly signal: AbortSignal
  readonly run: (wait: LoggedWait) => Promise<T>
  /** The fields of the last line beside its kind. */
  readonly done: (value: T) => object
}

/**
 * The answer of a route that works for long: a line of log each as it comes, and a last one that says how it ended, so that
 * a failure after minutes has its error in the same place. A reader that is slow misses lines and is told how many. Who stops
 * reading ends the work.
 */
export async function* logLines<T>({ signal, run, done }: LoggedWork<T>): AsyncGenerator<unknown> {
  const lines: { readonly kind: string }[] = []
  let wake = Promise.withResolvers<void>()
  let dropped = 0
  const stop = new AbortController()
  const onLine = (line: { readonly kind: string }) => {
    lines.push(line)
    wake.resolve()
  }
  const put = (kind: 'log' | 'detail', line: string) => {
    if (lines.length < SERVER_LIMITS.buildLinesWaiting) onLine({ kind, line } as { kind: string })
    else dropped += 1
    wake.resolve()
  }
  const work = run({
    signal: AbortSignal.any([signal, stop.signal]),
    onLog: (line) => put('log', line),
    onDetail: (line) => put('detail', line),
    onLine,
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
      for (let next = lines.shift(); next !== undefined; next = lines.shift()) yield next
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
