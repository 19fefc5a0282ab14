/** A client in a process of its own, to be killed: `node worker.ts WORK` (JSON, with `tasks`). Ends with its stdin. */
import { Sandlot } from 'sandlot'
import type { ChaosTask } from './behaviours.ts'
import { type ChaosWork, chaosEpisode, chaosOptions } from './work.ts'

interface Given extends ChaosWork {
  readonly url: string
  readonly apiKey: string
  readonly tasks: readonly ChaosTask[]
}

const given = await new Promise<Given>((resolve) => {
  let text = ''
  process.stdin.on('data', (bytes) => {
    text += bytes
    if (text.endsWith('\n')) resolve(JSON.parse(text))
  })
  process.stdin.once('end', () => process.exit())
})
const { url, apiKey, tasks, ...work } = given
await using client = new Sandlot({ url, apiKey })
await client.rollouts.map(tasks, chaosEpisode(work), chaosOptions(work)).wait()
