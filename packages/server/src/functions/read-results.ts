import { type Engine, isEngineError, type LogRecord } from '@sandlot/engine'
import { LIMITS, type QueueResult, type QueueResultsPage, SandlotError } from '@sandlot/protocol'
import { decodeJson } from '../json.ts'
import type { CallLogs } from './call-logs.ts'
import { FUNCTION_LIMITS } from './limits.ts'
import { OWN_CALL, resultKey, resultsOf } from './names.ts'
import type { News } from './news.ts'
import { type QueueRecord, resultRecord } from './records.ts'

export interface ReadQuery {
  readonly after?: string | undefined
  readonly limit?: number | undefined
  readonly wait?: number | undefined
  readonly call?: string | undefined
  readonly logs?: number | undefined
}

export interface Reading {
  readonly engine: Engine
  readonly now: () => number
  readonly news: News
  readonly logs: CallLogs
  /** Aborts when the daemon closes: nobody waits any longer. */
  readonly closing: AbortSignal
}

/** Replays of one task that are looked for. */
const REPLAYS_MAX = 100

/** A page of results; an empty one waits for news as long as it may. */
export async function pageOfResults(
  reading: Reading,
  { uid }: QueueRecord,
  query: ReadQuery,
  signal: AbortSignal,
): Promise<QueueResultsPage> {
  const { engine, now, news, logs: allLogs, closing } = reading
  const stream = resultsOf(uid, query.call ?? OWN_CALL)
  const untilMs = now() + Math.min(query.wait ?? 0, LIMITS.waitMs)
  const limit = Math.min(query.limit ?? FUNCTION_LIMITS.resultsPerPage, LIMITS.rowsPerPage)
  for (;;) {
    using waiting = news.subscribe(stream)
    const records = await read(engine, stream, { after: query.after, limit, signal })
    // After the results: a line is there before the result of its task.
    const { logs, next } =
      query.logs === undefined ? { logs: [], next: 0 } : allLogs.read(stream, query.logs)
    const leftMs = untilMs - now()
    if (records.length > 0 || logs.length > 0 || leftMs <= 0 || closing.aborted) {
      const cursor = records.at(-1)?.position ?? query.after ?? ''
      return { results: records.map(resultOf), cursor, logs: [...logs], logsNext: next }
    }
    await waiting.after(leftMs, AbortSignal.any([signal, closing])).catch((error) => {
      if (!closing.aborted) throw error
    })
  }
}

/** How a task ended, in its latest replay that has; undefined while it has not. */
export async function resultOfTask(
  reading: Reading,
  { uid }: QueueRecord,
  task: string,
  { call, wait }: ReadQuery,
  signal: AbortSignal,
): Promise<QueueResult | undefined> {
  const { engine, now, news, closing } = reading
  const stream = resultsOf(uid, call ?? OWN_CALL)
  const untilMs = now() + Math.min(wait ?? 0, LIMITS.waitMs)
  const keys = Array.from({ length: REPLAYS_MAX }, (_, replay) => resultKey(task, replay))
  for (;;) {
    using waiting = news.subscribe(stream)
    const found = (await engine.log.find(stream, keys, { signal })).findLast((each) => each)
    const leftMs = untilMs - now()
    if (found || leftMs <= 0 || closing.aborted) return found && resultOf(found)
    await waiting.after(leftMs, AbortSignal.any([signal, closing])).catch((error) => {
      if (!closing.aborted) throw error
    })
  }
}

async function read(
  { log }: Engine,
  stream: string,
  query: { after: string | undefined; limit: number; signal: AbortSignal },
): Promise<readonly LogRecord[]> {
  const { after, ...rest } = query
  try {
    return await log.read(stream, { ...rest, ...(after ? { after } : {}) })
  } catch (error) {
    if (isEngineError(error, 'log_trimmed')) {
      throw new SandlotError(
        'invalid_request',
        'results after this cursor were removed by their age',
        {
          hint: 'Leave `after` out to begin with the oldest that is there.',
          cause: error,
        },
      )
    }
    if (!isEngineError(error, 'invalid_argument')) throw error
    throw new SandlotError('invalid_request', '`after` is not the cursor of a result', {
      hint: 'Pass the cursor of a result or a page of this queue.',
      cause: error,
    })
  }
}

function resultOf({ position, bytes }: LogRecord): QueueResult {
  return { cursor: position, ...resultRecord.parse(decodeJson(bytes)) }
}
