/**
 * A run that survives its trainer. Start it, end it with Ctrl-C, start it again: the run is found by its name, and the rows go on
 * behind the cursor that was saved with the checkpoint.
 */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Image, Sandlot } from 'sandlot'

const checkpoint = join(tmpdir(), 'sandlot-resume.json')
const saved = await readFile(checkpoint, 'utf8').then(
  (text): { cursor: string; handled: number } => JSON.parse(text),
  () => undefined,
)

await using client = await Sandlot.local()
// Without `await using`: a run that is left goes on when somebody works on it again.
const run = client.rollouts.map(
  Array.from({ length: 50 }, (_, n) => ({ id: `square-${n}`, n })),
  async ({ sandbox, task }) => {
    const { stdout } = await sandbox.exec(`echo $((${task.n} * ${task.n}))`)
    return { reward: Number(stdout) === task.n ** 2 ? 1 : 0 }
  },
  {
    name: 'resume-example',
    ifExists: 'attach',
    from: Image.debian('bookworm'),
    concurrency: 4,
    onLog: console.error,
  },
)

let handled = saved?.handled ?? 0
for await (const row of run.results(saved ? { from: saved.cursor } : {})) {
  handled++
  console.log(`${handled}: ${row.key} ${row.outcome} ${row.reward}`)
  // Renamed into place: a Ctrl-C in the middle of writing leaves the checkpoint before.
  await writeFile(`${checkpoint}.next`, JSON.stringify({ cursor: row.cursor, handled }))
  await rename(`${checkpoint}.next`, checkpoint)
}
console.log(await run.report())
