import type { UnrecordedGroup, UnrecordedRow } from '@sandlot/core'
import type { Clock, Log } from '@sandlot/engine'
import { isTransient } from './engine-error.ts'
import { COORDINATOR_LIMITS } from './limits.ts'

/**
 * A run's results: the append is the commit point of an episode, and of a group. The episode's id, or the group's name, is the key of
 * deduplication, so what is appended again after a crash adds nothing. A group is appended when the rows before it are durable.
 */
export interface ResultLog {
  append(results: readonly SequencedResult[]): void
  /** Rows and groups that wait to be durable. */
  readonly waiting: number
  close(): Promise<void>
}

export type SequencedResult = { readonly seq: number } & (
  | { readonly row: UnrecordedRow }
  | { readonly group: UnrecordedGroup }
)

export interface ResultLogOptions {
  readonly log: Log
  readonly clock: Clock
  readonly rows: string
  readonly groups: string
  /** Everything up to this one is durable; so many rows of it are new. */
  recorded(through: number, rows: number): void
  failed(error: unknown): void
}

export function openResultLog(options: ResultLogOptions): ResultLog {
  const { log, clock, recorded, failed } = options
  let waiting: SequencedResult[] = []
  let closed = false
  let running = false
  let writing = Promise.resolve()
  let cancelRetry = () => {}

  async function writeAll() {
    running = true
    try {
      while (waiting.length > 0 && !closed) {
        const { rows, groups, through } = takeWhatFits()
        const added = await append(options.rows, rows)
        await append(options.groups, groups)
        if (!closed) recorded(through, added)
      }
    } catch (error) {
      closed = true
      failed(error)
    } finally {
      running = false
    }
  }

  function takeWhatFits() {
    const rows: Keyed[] = []
    const groups: Keyed[] = []
    let sizeBytes = 0
    let through = 0
    for (const result of waiting) {
      const keyed = encode(result)
      sizeBytes += keyed.record.length
      if (through > 0 && sizeBytes > COORDINATOR_LIMITS.resultAppendBytes) break
      if ('row' in result) rows.push(keyed)
      else groups.push(keyed)
      through = result.seq
    }
    waiting = waiting.slice(rows.length + groups.length)
    return { rows, groups, through }
  }

  async function append(stream: string, keyed: readonly Keyed[]) {
    const dedup = keyed.map(({ key }) => key)
    const records = keyed.map(({ record }) => record)
    while (!closed && records.length > 0) {
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
    append(results) {
      if (closed || results.length === 0) return
      waiting.push(...results)
      if (!running) writing = writeAll()
    },
    get waiting() {
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

interface Keyed {
  readonly key: string
  readonly record: Uint8Array
}

function encode(result: SequencedResult): Keyed {
  if ('row' in result) return { key: result.row.episode, record: encodeRow(result.row) }
  const { group } = result
  return { key: group.group, record: Buffer.from(JSON.stringify(group)) }
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
