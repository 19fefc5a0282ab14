import { LIMITS, type ResultsPage } from '@sandlot/protocol'
import type { LiveRun } from './live-run.ts'
import type { ResultsQuery, Wait } from './port.ts'
import { readRows } from './result-log.ts'
import type { RunRecord } from './run-record.ts'
import type { CoordinatorServices } from './services.ts'
import { resultStream } from './streams.ts'

const ROWS_DEFAULT = 100

/** A live run, or the record of one that is over. */
export interface FoundRun {
  readonly record: RunRecord
  readonly live: LiveRun | undefined
}

/** A page of results; an empty one waits for news as long as it may. `find` looks the run up, also after a wait. */
export async function readResults(
  { engine, clock, signal: stopping }: CoordinatorServices,
  find: () => Promise<FoundRun>,
  query: ResultsQuery,
  { signal }: Wait,
): Promise<ResultsPage> {
  const untilMs = clock.now() + Math.min(query.waitMs ?? 0, LIMITS.waitMs)
  const limit = Math.min(query.limit ?? ROWS_DEFAULT, LIMITS.rowsPerPage)
  const after = query.after ? { after: query.after } : {}
  await noteTaken(await find(), query.after)
  for (;;) {
    const { record, live } = await find()
    const over = live === undefined || live.actor.run.status === 'finished'
    const seen = live?.news.beats ?? 0
    const stream = resultStream(record)
    const page = await readRows(engine.log, stream, {
      ...{ limit, ...after },
      ...(signal ? { signal } : {}),
    })
    live?.marks?.served(query.after ?? '', { rows: page.rows.length, cursor: page.cursor })
    const leftMs = untilMs - clock.now()
    if (page.rows.length > 0 || over || leftMs <= 0 || stopping.aborted) {
      const head = over ? await engine.log.head(stream) : undefined
      return { ...page, done: over && (head === undefined || head === page.cursor) }
    }
    await live.news.after(seen, { timeoutMs: leftMs, signal })
  }
}

/** Whoever asks for what comes after a row has taken it: a run that keeps near its reader may go on. */
async function noteTaken({ live }: FoundRun, cursor: string | undefined): Promise<void> {
  if (live?.marks === undefined || !cursor) return
  const rows = await live.marks.rowsThrough(cursor)
  live.actor.post({ type: 'results_read', rows })
}
