/** `sandlot runs artifacts`. */
import { formatSize } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
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
  const { row } = await run.episode(key, { signal })
  if (row === null)
    return note(`the episode ${key} is not done: what it leaves comes with its result`)
  if (artifact !== undefined) return await printBytes(await run.artifact(row, artifact, { signal }))
  if (row.artifacts.length === 0) return note(`the episode ${key} left no artifacts`)
  const rows = row.artifacts.map((each) => [each.name, formatSize(each.sizeBytes), each.blob])
  printLine(formatTable(['NAME', 'SIZE', 'CONTENT'], rows))
}
