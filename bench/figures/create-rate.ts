import { availableParallelism } from 'node:os'
import type { Bench } from '../bench.ts'
import { execTrue, openDriver } from '../driver.ts'
import { interleave, ratePerSecond } from '../interleave.ts'
import { RawMachine } from '../raw/machine.ts'
import { startWorldToResult } from '../raw/world.ts'
import { benchSpec } from '../spec.ts'

/** Cold starts as many at a time as saturate the machine, each with a command's result and its end. */
export const createRate: Bench = async (context) => {
  const image = await context.image()
  const raw = await RawMachine.open(context)
  const { driver } = await openDriver(context)
  const concurrency = 2 * availableParallelism()
  const slice = { total: 5 * concurrency, concurrency }
  const samples = await interleave(
    context,
    { max: 8 },
    {
      plain: () =>
        ratePerSecond(slice, async () => (await raw.startToResult(benchSpec(image))).end()),
      world: () =>
        ratePerSecond(slice, async () => (await startWorldToResult(raw, benchSpec(image))).end()),
      ours: () =>
        ratePerSecond(slice, async () => {
          const sandbox = await driver.create(benchSpec(image))
          await execTrue(sandbox)
          await driver.stop(sandbox)
        }),
    },
  )
  const ours = { unit: '/s', samples: samples.ours, target: { of: 'ratio', atLeast: 0.9 } } as const
  return [
    {
      name: 'create-rate',
      ...ours,
      reference: samples.plain,
      note: `raw loop without a world; ${concurrency} in flight, slices of ${slice.total}`,
    },
    {
      name: 'create-rate.world',
      ...ours,
      reference: samples.world,
      note: 'raw loop that opens a world, as ours does',
    },
  ]
}
