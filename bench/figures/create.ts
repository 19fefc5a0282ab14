import type { Bench } from '../bench.ts'
import { execTrue, openDriver } from '../driver.ts'
import { interleave } from '../interleave.ts'
import { RawAgent } from '../raw/agent.ts'
import { RawMachine } from '../raw/machine.ts'
import { benchSpec, TRUE_COMMAND } from '../spec.ts'

/** A cold start, one at a time, to the result of its first command. What ends it is not timed. */
export const create: Bench = async (context) => {
  const image = await context.image()
  const raw = await RawMachine.open(context)
  const { driver } = await openDriver(context)
  const samples = await interleave(
    context,
    { max: 30 },
    {
      plain: () =>
        startAndEnd(
          () => raw.startToResult(benchSpec(image)),
          (each) => each.end(),
        ),
      world: () =>
        startAndEnd(
          () => startWorld(raw, benchSpec(image)),
          (each) => each.end(),
        ),
      ours: () =>
        startAndEnd(
          async () => {
            const sandbox = await driver.create(benchSpec(image))
            await execTrue(sandbox)
            return sandbox
          },
          (sandbox) => driver.stop(sandbox),
        ),
    },
  )
  return [
    {
      name: 'create',
      unit: 'ms',
      samples: samples.ours,
      reference: samples.plain,
      target: { of: 'ratio', atMost: 1.4 },
      note: 'reference: raw runsc whose program is the first command',
    },
    {
      name: 'create.world',
      unit: 'ms',
      samples: samples.ours,
      reference: samples.world,
      note: 'reference: raw runsc with the agent, a world and one command',
    },
  ]
}

async function startAndEnd<T>(
  start: () => Promise<T>,
  end: (started: T) => Promise<unknown>,
): Promise<number> {
  const startedMs = performance.now()
  const started = await start()
  const elapsedMs = performance.now() - startedMs
  await end(started)
  return elapsedMs
}

async function startWorld(raw: RawMachine, spec: ReturnType<typeof benchSpec>) {
  const sandbox = await raw.start('agent', spec)
  const agent = await RawAgent.attach(sandbox.pipes)
  await agent.openWorld(spec)
  await agent.exec(TRUE_COMMAND, 'buffered').done
  return sandbox
}
