import { type Engine, isEngineError, type LogRecord } from '@sandlot/engine'
import { LIMITS, type QueueResult, type QueueResultsPage, SandlotError } from '@sandlot/protocol'
import { decodeJson } from '../json.ts'
import type { CallLogs } from './call-logs.ts'
import { FUNCTION_LIMITS } from './limits.ts'
import { messagesOf, OWN_CALL, resultKey, resultsOf } from './names.ts'
import type { News } from './news.ts'
import { type QueueRecord, resultRecord } from './records.ts'
import { taskId } from './task-id.ts'

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

/**
 * How a task ended, in its latest replay that has; undefined while it has not.
 * @throws SandlotError `not_found` where it never will
 */
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
  const id = taskId(task)
  const keys = Array.from({ length: REPLAYS_MAX }, (_, replay) => resultKey(id, replay))
  for (;;) {
    using waiting = news.subscribe(stream)
    // Its result is there before its message goes.
    const mayCome = await isBusy(engine, uid)
    const found = (await engine.log.find(stream, keys, { signal })).findLast((each) => each)
    if (!found && !mayCome) throw unknownTask(task)
    const leftMs = untilMs - now()
    if (found || leftMs <= 0 || closing.aborted) return found && resultOf(found)
    await waiting.after(leftMs, AbortSignal.any([signal, closing])).catch((error) => {
      if (!closing.aborted) throw error
    })
  }
}

async function isBusy({ queue }: Engine, uid: string): Promise<boolean> {
  const { ready, delayed, leased } = await queue.depth(messagesOf(uid))
  return ready + delayed + leased > 0
}

function unknownTask(task: string): SandlotError {
  const message = `the task ${shown(task)} neither waits nor runs, and there is no result of it`
  return new SandlotError('not_found', message, {
    hint: 'Results are kept for a day where they are of calls, for a week where they are of a queue, or as long as `retain` or the daemon says.',
  })
}

function shown(task: string): string {
  return JSON.stringify(task.slice(0, 64))
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
    // A queue that was deleted and made again has no stream yet.
    if (!isEngineError(error, 'invalid_argument') && !isEngineError(error, 'not_found')) throw error
    throw new SandlotError(
      'invalid_request',
      '`after` is not the cursor of a result that is here',
      {
        hint: 'Pass the cursor of a result or a page of this queue; those of a deleted one are of no other.',
        cause: error,
      },
    )
  }
}

function resultOf({ position, bytes }: LogRecord): QueueResult {
  return { cursor: position, ...resultRecord.parse(decodeJson(bytes)) }
}
