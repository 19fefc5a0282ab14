import { findLeaks } from '@sandlot/testkit'
import type { Bench, BenchContext } from '../bench.ts'
import { openDriver } from '../driver.ts'
import { interleave } from '../interleave.ts'
import { childrenOf, commandOf, processorMs } from '../processes.ts'
import { RawMachine } from '../raw/machine.ts'
import { benchSpec } from '../spec.ts'

const AT_ONCE = 20
const BATCH = 100
const CLEAN_WITHIN_MS = 30_000

/** Ours is the time of this process, where the driver runs, and of the driver's host helper. */
export const teardown: Bench = async (context) => {
  const image = await context.image()
  const raw = await RawMachine.open(context)
  const { driver, stateDirectory } = await openDriver(context)
  const start = (count: number) =>
    Promise.all(Array.from({ length: count }, () => driver.create(benchSpec(image), context)))
  const samples = await interleave(
    context,
    { max: 5, warmUp: 0, share: 0.5 },
    {
      raw: async () => {
        const started = await oneByOne(() => raw.startToResult(benchSpec(image)))
        const helpers = [raw.helper.pid]
        return await processorMsOf(helpers, () => Promise.all(started.map((each) => each.end())))
      },
      ours: async () => {
        const started = await start(AT_ONCE)
        const helpers = helpersOf(raw)
        return await processorMsOf(helpers, () =>
          Promise.all(started.map((each) => driver.stop(each))),
        )
      },
    },
  )
  const batch = await start(BATCH)
  const beginMs = performance.now()
  const stopped = Promise.all(batch.map((each) => driver.stop(each)))
  const cleanMs = await untilClean(stateDirectory, context)
  await stopped
  return [
    {
      name: 'teardown',
      unit: 'ms',
      samples: samples.ours,
      reference: samples.raw,
      note: `processor time of ours for each of ${AT_ONCE} that end at once`,
    },
    {
      name: 'teardown.clean',
      unit: 's',
      samples: [(cleanMs - beginMs) / 1000],
      target: { of: 'value', atMost: 2 },
      note: `until nothing is left on the machine of ${BATCH} that end at once`,
    },
  ]
}

async function oneByOne<T>(make: () => Promise<T>): Promise<T[]> {
  const made: T[] = []
  for (let each = 0; each < AT_ONCE; each++) made.push(await make())
  return made
}

/** Processor time that the work takes of this process and of helpers, for each of `AT_ONCE`. */
async function processorMsOf(
  helpers: readonly number[],
  work: () => Promise<unknown>,
): Promise<number> {
  const helperMs = () => helpers.reduce((sum, pid) => sum + processorMs(pid), 0)
  const before = process.cpuUsage()
  const helperBefore = helperMs()
  await work()
  const { user, system } = process.cpuUsage(before)
  return ((user + system) / 1000 + helperMs() - helperBefore) / AT_ONCE
}

function helpersOf(raw: RawMachine): readonly number[] {
  return childrenOf(process.pid).filter(
    (pid) => pid !== raw.helper.pid && commandOf(pid).includes('sandlot-helper'),
  )
}

/** When there was nothing left. The helper lives as long as the driver. */
async function untilClean(stateDirectory: string, { signal }: BenchContext): Promise<number> {
  const endMs = performance.now() + CLEAN_WITHIN_MS
  for (;;) {
    const left = (await findLeaks({ stateDirectory })).filter(
      (line) => !line.includes('sandlot-helper'),
    )
    const nowMs = performance.now()
    if (left.length === 0) return nowMs
    signal.throwIfAborted()
    if (nowMs > endMs) throw new Error(`left after ${BATCH}:\n${left.join('\n')}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
