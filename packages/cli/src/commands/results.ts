/** `sandlot runs results`. */
import { type ResultRow, Sandlot } from 'sandlot'
import { exportRows } from '../output/export-rows.ts'
import { note, printBytes } from '../output/terminal.ts'
import { interruption } from './interruption.ts'

export interface ResultsCommandOptions {
  readonly from?: string
  readonly now?: boolean
  readonly output?: string
}

/** One JSON row a line, from a cursor, until the run is over. */
export async function resultsCommand(
  name: string,
  { from, now, output }: ResultsCommandOptions,
): Promise<void> {
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
  const rows = await exportRows({ file: output, run: id, from, rowsFrom, lineOf })
  note(`${rows} ${rows === 1 ? 'row is' : 'rows are'} in ${output}`)
}

function lineOf(row: ResultRow): Uint8Array {
  return Buffer.from(`${JSON.stringify(row)}\n`)
}
