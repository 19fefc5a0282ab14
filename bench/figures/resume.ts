import { join } from 'node:path'
import { openSqliteEngine } from '@sandlot/engine'
import type { Bench } from '../bench.ts'
import { openCoordinator } from '../coordinator/alone.ts'
import { putTasks } from '../coordinator/put-tasks.ts'
import { Turnstile } from '../coordinator/turnstile.ts'
import { startWorker } from '../coordinator/worker.ts'
import { temporaryDirectory } from '../temporary.ts'

const EPISODES = 16_000
const DONE = EPISODES / 2
const LIVE = 200

/**
 * A run of 16,000 episodes of which half are done and 200 are under way, left by its daemon. How long the next takes until it decides
 * for the run again, the 200 sandboxes that did not survive counted.
 */
export const resume: Bench = async (context) => {
  const samples: number[] = []
  const reference: number[] = []
  const directory = await temporaryDirectory(context)
  await leaveRun(directory)
  for (let round = 0; round < 5; round++) {
    reference.push(await readAndParse(directory))
    await using opened = await openCoordinator(directory)
    const { state, counts } = await opened.coordinator.getRun('default', 'bench')
    if (counts.tasks !== EPISODES || state === 'finished') throw new Error(`it is ${state}`)
    samples.push(opened.recoveryMs)
  }
  return [
    {
      name: 'resume',
      unit: 'ms',
      samples,
      reference,
      target: { of: 'value', atMost: 3_000 },
      note: `${EPISODES} episodes, ${DONE} of them done, ${LIVE} under way; against reading and parsing its events alone`,
    },
  ]
}

async function leaveRun(directory: string): Promise<void> {
  await using opened = await openCoordinator(directory)
  using workers = new DisposableStack()
  const { coordinator: ours, image: from } = opened
  const turnstile = new Turnstile({ inFlight: LIVE, moving: LIVE, total: DONE })
  const run = { name: 'bench', kind: 'worker', from, concurrency: LIVE } as const
  await ours.createRun('default', run)
  await putTasks(ours, run.name, 0, EPISODES)
  await ours.closeRun('default', run.name)
  workers.use(await startWorker(ours, { run: run.name, slots: LIVE, turnstile }))
  turnstile.open()
  for (;;) {
    const { counts } = await ours.getRun('default', run.name)
    if (counts.done >= DONE) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** The checkpoint and the records that recovery has to read, as JSON, and nothing made of them. */
async function readAndParse(directory: string): Promise<number> {
  await using engine = await openSqliteEngine({ directory: join(directory, 'engine') })
  const { streams } = await engine.log.list('run/')
  const beginMs = performance.now()
  for (const { name } of streams.filter(({ name }) => /\/events$/.test(name))) {
    const checkpoint = await engine.log.latestCheckpoint(name)
    if (checkpoint) JSON.parse(Buffer.from(checkpoint.state).toString())
    for (let after = checkpoint?.position; ; ) {
      const page = await engine.log.read(name, after === undefined ? {} : { after })
      for (const { bytes } of page) JSON.parse(Buffer.from(bytes).toString().slice(1))
      after = page.at(-1)?.position ?? after
      if (page.length === 0) break
    }
  }
  return performance.now() - beginMs
}
