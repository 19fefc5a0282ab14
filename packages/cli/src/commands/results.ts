/** `sandlot runs results`. */
import { type ResultRow, Sandlot } from 'sandlot'
import { Mistake } from '../failure.ts'
import { exportRows } from '../output/export-rows.ts'
import { writeParquet } from '../output/parquet.ts'
import { note, printBytes } from '../output/terminal.ts'
import { interruption } from './interruption.ts'

export interface ResultsCommandOptions {
  readonly from?: string
  readonly now?: boolean
  readonly output?: string
  readonly format?: 'jsonl' | 'parquet'
}

/** One JSON row a line, from a cursor, until the run is over. */
export async function resultsCommand(
  name: string,
  { from, now, output, format }: ResultsCommandOptions,
): Promise<void> {
  const isTable = format === 'parquet'
  if (isTable && output === undefined) {
    throw new Mistake(
      'a table is written to a file',
      `sandlot runs results ${name} --format parquet --output ${name}.parquet`,
    )
  }
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  const run = await client.rollouts.get(name, { signal })
  const rowsFrom = (cursor: string | undefined): AsyncIterable<ResultRow> =>
    run.results({
      ...{ signal, dropped: true, wait: !now },
      ...(cursor === undefined ? {} : { from: cursor }),
    })
  if (output === undefined) {
    for await (const row of rowsFrom(from)) await printBytes(lineOf(row))
    return
  }
  const { id } = await run.view({ signal })
  const rows = await exportRows({
    ...{ file: output, run: id, from, rowsFrom, lineOf },
    convert: isTable ? writeParquet : undefined,
  })
  note(`${rows} ${rows === 1 ? 'row is' : 'rows are'} in ${output}`)
}

function lineOf(row: ResultRow): Uint8Array {
  return Buffer.from(`${JSON.stringify(row)}\n`)
}
