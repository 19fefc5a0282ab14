/** A client in a process of its own, to be killed: `node worker.ts WORK` (JSON, with `tasks`). Ends with its stdin. */
import { Sandlot, SandlotError } from 'sandlot'
import type { ChaosTask } from './behaviours.ts'
import { type ChaosWork, chaosEpisode, chaosOptions } from './work.ts'

const AGAIN_MS = 200

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
for (;;) {
  try {
    await client.rollouts.map(tasks, chaosEpisode(work), chaosOptions(work)).wait()
    break
  } catch (error) {
    // It came while there was no daemon: as any service it is begun again.
    if (!(error instanceof SandlotError && error.retry)) throw error
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
  }
}
