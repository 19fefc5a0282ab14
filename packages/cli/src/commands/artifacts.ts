/** `sandlot runs artifacts`. */
import { formatSize } from '@sandlot/protocol'
import { type ResultRow, type Run, Sandlot, SandlotError } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printBytes, printLine } from '../output/terminal.ts'
import { interruption } from './interruption.ts'

/** Lists what an episode left, or prints one of it. */
export async function artifactsCommand(
  name: string,
  key: string,
  artifact?: string,
): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  const run = await client.rollouts.get(name)
  const row = await findRow(run, key, signal)
  if (artifact !== undefined) return await printBytes(await run.artifact(row, artifact, { signal }))
  if (row.artifacts.length === 0) return note(`the episode ${key} left no artifacts`)
  const rows = row.artifacts.map((each) => [each.name, formatSize(each.sizeBytes), each.blob])
  printLine(formatTable(['NAME', 'SIZE', 'CONTENT'], rows))
}

/** Among the results that are there now. */
async function findRow(run: Run, key: string, signal: AbortSignal): Promise<ResultRow> {
  const { counts } = await run.view({ signal })
  let left = counts.done
  if (left > 0) {
    for await (const row of run.results({ signal, dropped: true })) {
      if (row.key === key) return row
      if (--left === 0) break
    }
  }
  throw new SandlotError('not_found', `the run ${run.name} has no result of the key ${key} yet`, {
    hint: `\`sandlot runs results ${run.name}\` prints all.`,
  })
}
