/** Rows of results as a Parquet file, for what reads tables. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { resultRow } from '@sandlot/protocol'
import type { ResultRow } from 'sandlot'

/** Rows that are in memory at once. */
const GROUP_ROWS = 1_000

type Kind = 'STRING' | 'BOOLEAN' | 'INT32' | 'DOUBLE' | 'TIMESTAMP'

/** What is one value of a row. Of the rest each is JSON text, but for what is flat below. */
const KINDS: Partial<Record<keyof ResultRow, Kind>> = {
  schema: 'INT32',
  cursor: 'STRING',
  run: 'STRING',
  key: 'STRING',
  episode: 'STRING',
  group: 'STRING',
  member: 'INT32',
  index: 'INT32',
  attempt: 'INT32',
  parent: 'STRING',
  seed: 'DOUBLE',
  policyVersion: 'INT32',
  from: 'STRING',
  outcome: 'STRING',
  valid: 'BOOLEAN',
  dropped: 'BOOLEAN',
  reward: 'DOUBLE',
  dataBlob: 'STRING',
  error: 'STRING',
  kept: 'STRING',
  sandbox: 'STRING',
  node: 'STRING',
  startedAt: 'TIMESTAMP',
  endedAt: 'TIMESTAMP',
}

/** Their numbers are columns of their own: `phases.agentMs`. */
const FLAT = { phases: resultRow.shape.phases, usage: resultRow.shape.usage } as const

interface Column {
  readonly name: string
  readonly type: Kind
  of(row: ResultRow): unknown
}

/** Makes a file of rows that are one JSON a line. */
export async function writeParquet(lines: string, file: string): Promise<void> {
  const { fileWriter, parquetWriteRows } = await import('hyparquet-writer')
  const columns = columnsOf()
  await parquetWriteRows({
    writer: fileWriter(file),
    rows: recordsOf(lines, columns),
    columns: columns.map(({ name, type }) => ({ name, type, nullable: true })),
    rowGroupSize: GROUP_ROWS,
    createdBy: 'sandlot',
  })
}

async function* recordsOf(
  lines: string,
  columns: readonly Column[],
): AsyncGenerator<Record<string, unknown>> {
  for await (const line of createInterface({ input: createReadStream(lines) })) {
    const row = JSON.parse(line) as ResultRow
    yield Object.fromEntries(columns.map(({ name, of }) => [name, of(row)]))
  }
}

function columnsOf(): Column[] {
  return (Object.keys(resultRow.shape) as (keyof ResultRow)[]).flatMap((name) => {
    if (name === 'phases' || name === 'usage') return flatColumns(name)
    const type = KINDS[name]
    return [
      type === undefined ? jsonColumn(name) : { name, type, of: (row) => value(type, row[name]) },
    ]
  })
}

function flatColumns(name: keyof typeof FLAT): Column[] {
  return Object.keys(FLAT[name].shape).map((part) => ({
    name: `${name}.${part}`,
    type: 'DOUBLE',
    of: (row) => (row[name] as Record<string, number> | undefined)?.[part] ?? null,
  }))
}

function jsonColumn(name: keyof ResultRow): Column {
  return {
    name,
    type: 'STRING',
    of: (row) => (row[name] == null ? null : JSON.stringify(row[name])),
  }
}

function value(type: Kind, given: unknown): unknown {
  if (given === null || given === undefined) return null
  return type === 'TIMESTAMP' ? new Date(given as string) : given
}
