/** Reads what a run's logs hold of its rows and groups. */
import type { UnrecordedGroup, UnrecordedRow } from '@sandlot/core'
import { isEngineError, type Log, type LogRecord } from '@sandlot/engine'
import { type ResultGroup, type ResultRow, SandlotError } from '@sandlot/protocol'
import { COORDINATOR_LIMITS } from './limits.ts'
import { groupStream, type RunAddress, resultStream } from './streams.ts'

export interface StoredQuery {
  readonly after?: string
  readonly limit: number
  readonly signal?: AbortSignal
}

export interface Stored<T> {
  readonly items: T[]
  /** Of the last one that was read, or the one given. */
  readonly cursor: string
}

export async function readRows(
  log: Log,
  run: RunAddress,
  query: StoredQuery,
): Promise<Stored<ResultRow>> {
  const records = await read(log, resultStream(run), query)
  return page(records.map(decodeRow), query)
}

/**
 * Groups with the rows that count in them. A page also ends when it has many bytes, but never before its first group.
 * `versionMin`: of the policy, below which a result is too old by now.
 */
export async function readGroups(
  log: Log,
  run: RunAddress,
  query: StoredQuery & { readonly versionMin: number },
): Promise<Stored<ResultGroup>> {
  const groups: ResultGroup[] = []
  let sizeBytes = 0
  for (const record of await read(log, groupStream(run), query)) {
    const { episodes, ...group } = decode<UnrecordedGroup>(record)
    const found = await findRows(log, run, episodes)
    sizeBytes += found.reduce((sum, { bytes }) => sum + bytes.length, record.bytes.length)
    if (groups.length > 0 && sizeBytes > COORDINATOR_LIMITS.resultPageBytes) break
    const rows = found.map(decodeRow)
    const stale = rows.some(({ policyVersion }) => policyVersion < query.versionMin)
    groups.push({ ...group, cursor: record.position, stale, rows })
  }
  return page(groups, query)
}

/** How many records of a stream there are up to a cursor; 0 for a cursor that is none of it. */
export async function countThrough(log: Log, stream: string, cursor: string): Promise<number> {
  let records = 0
  for (let after: string | undefined; ; ) {
    const limit = COORDINATOR_LIMITS.readMarks
    const found = await read(log, stream, { limit, ...(after === undefined ? {} : { after }) })
    const at = found.findIndex(({ position }) => position === cursor)
    if (at >= 0) return records + at + 1
    records += found.length
    after = found.at(-1)?.position
    if (after === undefined) return 0
  }
}

/** The row of an episode, by its id where that is known, or else by its key: then all are looked through. */
export async function findRow(
  log: Log,
  run: RunAddress,
  { name, episode }: { readonly name: string; readonly episode: string | undefined },
): Promise<ResultRow | undefined> {
  const stream = resultStream(run)
  const [byId] = episode === undefined ? [] : await log.find(stream, [episode])
  if (byId) return decodeRow(byId)
  const written = Buffer.from(`"key":${JSON.stringify(name)}`)
  for (let after: string | undefined; ; ) {
    const page = await read(log, stream, {
      limit: COORDINATOR_LIMITS.rowsLookedAt,
      ...(after === undefined ? {} : { after }),
    })
    for (const record of page) {
      // Whatever else says so is told by the row itself.
      const mayBe = Buffer.from(record.bytes.buffer, record.bytes.byteOffset, record.bytes.length)
      if (!mayBe.includes(written)) continue
      const row = decodeRow(record)
      if (row.key === name) return row
    }
    after = page.at(-1)?.position
    if (after === undefined) return undefined
  }
}

/** The rows of a group were durable before it was: they are there, as long as the group is. */
async function findRows(
  log: Log,
  run: RunAddress,
  episodes: readonly string[],
): Promise<LogRecord[]> {
  const rows: LogRecord[] = []
  while (rows.length < episodes.length) {
    for (const row of await log.find(resultStream(run), episodes.slice(rows.length))) {
      if (row === undefined) {
        throw new SandlotError('internal', `a row of ${episodes[rows.length]} is missing`)
      }
      rows.push(row)
    }
  }
  return rows
}

async function read(log: Log, stream: string, query: StoredQuery): Promise<LogRecord[]> {
  try {
    return await log.read(stream, query)
  } catch (error) {
    if (!isEngineError(error, 'invalid_argument')) throw error
    throw new SandlotError('invalid_request', '`after` is not the cursor of a result', {
      cause: error,
      hint: 'Pass the cursor of a row, a group or a page of this run.',
    })
  }
}

function page<T extends { readonly cursor: string }>(items: T[], { after }: StoredQuery) {
  return { items, cursor: items.at(-1)?.cursor ?? after ?? '' }
}

function decodeRow(record: LogRecord): ResultRow {
  return { ...decode<UnrecordedRow>(record), cursor: record.position }
}

function decode<T>({ bytes }: LogRecord): T {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()) as T
}
