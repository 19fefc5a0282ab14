import type { UnrecordedRow } from '@sandlot/core'
import { type Clock, isEngineError, type Log, type Position } from '@sandlot/engine'
import { type ResultRow, SandlotError } from '@sandlot/protocol'
import { isTransient } from './engine-error.ts'
import { COORDINATOR_LIMITS } from './limits.ts'

/**
 * A run's results: the append is the commit point of an episode. The episode's id is the key of deduplication, so a row that is
 * appended again after a crash adds nothing.
 */
export interface ResultLog {
  append(rows: readonly SequencedRow[]): void
  /** Rows that wait to be durable. */
  readonly rowsWaiting: number
  close(): Promise<void>
}

export interface SequencedRow {
  readonly seq: number
  readonly row: UnrecordedRow
}

export interface ResultLogOptions {
  readonly log: Log
  readonly clock: Clock
  readonly stream: string
  /** Every row up to this one is durable; so many of them are new. */
  recorded(through: number, rows: number): void
  failed(error: unknown): void
}

export function openResultLog(options: ResultLogOptions): ResultLog {
  const { log, clock, stream, recorded, failed } = options
  let waiting: SequencedRow[] = []
  let closed = false
  let running = false
  let writing = Promise.resolve()
  let cancelRetry = () => {}

  async function writeAll() {
    running = true
    try {
      while (waiting.length > 0 && !closed) {
        const { records, dedup, through } = takeWhatFits()
        const rows = await append(records, dedup)
        if (!closed) recorded(through, rows)
      }
    } catch (error) {
      closed = true
      failed(error)
    } finally {
      running = false
    }
  }

  function takeWhatFits() {
    const records: Uint8Array[] = []
    const dedup: string[] = []
    let sizeBytes = 0
    let through = 0
    for (const { seq, row } of waiting) {
      const record = encodeRow(row)
      sizeBytes += record.length
      if (records.length > 0 && sizeBytes > COORDINATOR_LIMITS.resultAppendBytes) break
      records.push(record)
      dedup.push(row.episode)
      through = seq
    }
    waiting = waiting.slice(records.length)
    return { records, dedup, through }
  }

  async function append(records: readonly Uint8Array[], dedup: readonly string[]) {
    while (!closed) {
      try {
        const { duplicates } = await log.append(stream, records, { dedup })
        return records.length - duplicates.length
      } catch (error) {
        if (!isTransient(error)) throw error
        await new Promise<void>((resolve) => {
          const cancel = clock.after(COORDINATOR_LIMITS.appendRetryMs, resolve)
          cancelRetry = () => {
            cancel()
            resolve()
          }
        })
      }
    }
    return 0
  }

  return {
    append(rows) {
      if (closed || rows.length === 0) return
      waiting.push(...rows)
      if (!running) writing = writeAll()
    },
    get rowsWaiting() {
      return waiting.length
    },
    async close() {
      closed = true
      waiting = []
      cancelRetry()
      await writing
    },
  }
}

export interface RowsPage {
  readonly rows: ResultRow[]
  /** Of the last row that was read, or the one given. */
  readonly cursor: string
}

export async function readRows(
  log: Log,
  stream: string,
  query: { readonly after?: string; readonly limit: number; readonly signal?: AbortSignal },
): Promise<RowsPage> {
  try {
    const records = await log.read(stream, query)
    const rows = records.map(({ position, bytes }) => decodeRow(position, bytes))
    return { rows, cursor: rows.at(-1)?.cursor ?? query.after ?? '' }
  } catch (error) {
    if (!isEngineError(error, 'invalid_argument')) throw error
    throw new SandlotError('invalid_request', '`after` is not the cursor of a result', {
      cause: error,
      hint: 'Pass the cursor of a row or page of this run.',
    })
  }
}

/** Rows are far below the bound, but for those whose many attempts all failed with long causes: these are cut. */
function encodeRow(row: UnrecordedRow): Uint8Array {
  const whole = Buffer.from(JSON.stringify(row))
  if (whole.length <= COORDINATOR_LIMITS.resultBytes) return whole
  const short = (cause: readonly string[]) =>
    cause.map((line) => line.slice(0, COORDINATOR_LIMITS.causeCharactersCut))
  const attempts = row.attempts.map((attempt) => ({ ...attempt, cause: short(attempt.cause) }))
  return Buffer.from(JSON.stringify({ ...row, cause: short(row.cause), attempts }))
}

function decodeRow(position: Position, bytes: Uint8Array): ResultRow {
  const row = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString())
  return { ...row, cursor: position } as ResultRow
}
