import type { Bench } from '../bench.ts'
import { execTrue, openDriver } from '../driver.ts'
import { interleave } from '../interleave.ts'
import { RawMachine } from '../raw/machine.ts'
import { startWorldToResult } from '../raw/world.ts'
import { benchSpec } from '../spec.ts'

const PLAIN = 'reference: raw runsc whose program is the first command'
const WORLD = 'reference: raw runsc with the agent, a world and one command'

/** A cold start, one at a time, to the result of its first command. What ends it is not timed. */
export const create: Bench = async (context) => {
  const image = await context.image()
  const raw = await RawMachine.open(context)
  const { driver } = await openDriver(context)
  const plain = new Starts()
  const world = new Starts()
  const ours = new Starts()
  const samples = await interleave(
    context,
    { max: 30, warmUp: WARM_UP },
    {
      plain: () =>
        plain.time({
          start: () => raw.startToResult(benchSpec(image)),
          processorMs: async ({ leaf }) => (await leaf.usage()).cpuMs,
          end: (each) => each.end(),
        }),
      world: () =>
        world.time({
          start: () => startWorldToResult(raw, benchSpec(image)),
          processorMs: async ({ leaf }) => (await leaf.usage()).cpuMs,
          end: (each) => each.end(),
        }),
      ours: () =>
        ours.time({
          start: async () => {
            const sandbox = await driver.create(benchSpec(image))
            await execTrue(sandbox)
            return sandbox
          },
          processorMs: async (each) => (await driver.usage(each)).cpuMs,
          end: (each) => driver.stop(each),
        }),
    },
  )
  const latency = { unit: 'ms', samples: samples.ours } as const
  const processor = { unit: 'ms', samples: ours.processorMs.slice(WARM_UP) } as const
  return [
    {
      name: 'create',
      ...latency,
      reference: samples.plain,
      target: { of: 'ratio', atMost: 1.4 },
      note: PLAIN,
    },
    { name: 'create.world', ...latency, reference: samples.world, note: WORLD },
    {
      name: 'create.processor',
      ...processor,
      reference: plain.processorMs.slice(WARM_UP),
      note: 'processor time of the sandbox’s cgroup and this process',
    },
    {
      name: 'create.processor-world',
      ...processor,
      reference: world.processorMs.slice(WARM_UP),
      note: WORLD,
    },
  ]
}

const WARM_UP = 1

interface Start<T> {
  readonly start: () => Promise<T>
  /** Processor time that the sandbox itself has used. */
  readonly processorMs: (started: T) => Promise<number>
  readonly end: (started: T) => Promise<unknown>
}

/** Starts of one kind, and the processor time that each took, on the sandbox's side and on this. */
class Starts {
  readonly processorMs: number[] = []

  async time<T>({ start, processorMs, end }: Start<T>): Promise<number> {
    const before = process.cpuUsage()
    const startedMs = performance.now()
    const started = await start()
    const elapsedMs = performance.now() - startedMs
    const { user, system } = process.cpuUsage(before)
    this.processorMs.push((user + system) / 1000 + (await processorMs(started)))
    await end(started)
    return elapsedMs
  }
}
