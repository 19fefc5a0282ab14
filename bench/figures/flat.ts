import type { Bench } from '../bench.ts'
import { openCoordinator } from '../coordinator/alone.ts'
import { putTasks } from '../coordinator/put-tasks.ts'
import { countResults } from '../coordinator/results.ts'
import { stopwatch } from '../coordinator/stopwatch.ts'
import { Turnstile } from '../coordinator/turnstile.ts'
import { startWorker } from '../coordinator/worker.ts'
import { temporaryDirectory } from '../temporary.ts'

const IN_FLIGHT = 500
const SMALL = 1_000
const LARGE = 100_000
/** So many small runs beside each large one, half before it and half after. */
const SMALL_RUNS = 10

/** What an episode costs in a run of 100,000, against one in a run of 1,000, as many in flight. */
export const flat: Bench = async (context) => {
  const directory = await temporaryDirectory(context)
  await using opened = await openCoordinator(directory)
  const { coordinator: ours, image } = opened

  async function processorMs(name: string, total: number): Promise<number> {
    using workers = new DisposableStack()
    const turnstile = new Turnstile({ inFlight: IN_FLIGHT, moving: IN_FLIGHT, total })
    const taken = stopwatch()
    const run = { name, kind: 'worker', from: image, concurrency: IN_FLIGHT } as const
    await ours.createRun('default', run)
    workers.use(await startWorker(ours, { run: name, slots: IN_FLIGHT, turnstile }))
    turnstile.open()
    const [results] = await Promise.all([countResults(ours, name), putAll(name, total)])
    if (results !== total) throw new Error(`${results} results of ${total}`)
    return taken().processorMs / total
  }

  async function putAll(name: string, total: number): Promise<void> {
    await putTasks(ours, name, 0, total)
    await ours.closeRun('default', name)
  }

  await processorMs('warm', 10 * SMALL)
  const reference: number[] = []
  const small = async (from: number) => {
    for (let n = from; n < from + SMALL_RUNS / 2; n++) {
      reference.push(await processorMs(`small-${n}`, SMALL))
    }
  }
  await small(0)
  const samples = [await processorMs('large', LARGE)]
  await small(SMALL_RUNS / 2)
  return [
    {
      name: 'flat',
      unit: 'ms',
      samples,
      reference,
      target: { of: 'ratio', atMost: 1.2 },
      note: `processor time of an episode, all threads, in a run of ${LARGE} against runs of ${SMALL}; ${IN_FLIGHT} in flight`,
    },
  ]
}
