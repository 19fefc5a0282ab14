import { availableParallelism } from 'node:os'
import type { SandboxView } from '@sandlot/protocol'
import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { poolFull } from '../daemon/pool.ts'
import { interleave, timed } from '../interleave.ts'
import { RawMachine, type RawSandbox } from '../raw/machine.ts'
import { benchSpec, TRUE_COMMAND } from '../spec.ts'

const AT_ONCE = 100
/** Programs and connections are warm after so many. */
const WARM_UP = 10
/** So that all of them have room at once. */
const RESOURCES = { cpu: { request: 0.01, limit: 2 } }

/**
 * A hundred creates at once from a pool that has a hundred blanks, until each has a command's result. The raw loop starts as many and
 * waits for a result of each, two in flight for each processor. What ends them is not timed.
 */
export const burst: Bench = async (context) => {
  const image = await context.image()
  const raw = await RawMachine.open(context)
  const daemon = context.scope.use(
    await BenchDaemon.start(context, await daemonSetting(context, { poolTarget: AT_ONCE })),
  )
  using api = new Api(daemon, { connections: AT_ONCE })
  const ours = async (count: number) => {
    await poolFull(api, context)
    const ids: string[] = []
    const elapsedMs = await timed(() =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const asked = { from: image.id, resources: RESOURCES }
          const { id } = await api.json<SandboxView>('POST', '/v1/sandboxes', asked)
          ids.push(id)
          await api.json('POST', `/v1/sandboxes/${id}/exec`, { command: TRUE_COMMAND })
        }),
      ),
    )
    await Promise.all(ids.map((id) => api.json('DELETE', `/v1/sandboxes/${id}`)))
    return elapsedMs / 1000
  }
  const plain = async (count: number) => {
    const started: RawSandbox[] = []
    const elapsedMs = await timed(() =>
      inLanes(count, async () => {
        started.push(await raw.startToResult(benchSpec(image)))
      }),
    )
    await Promise.all(started.map((each) => each.end()))
    return elapsedMs / 1000
  }
  await ours(WARM_UP)
  await plain(WARM_UP)
  const samples = await interleave(
    context,
    { max: 5, warmUp: 0 },
    { plain: () => plain(AT_ONCE), ours: () => ours(AT_ONCE) },
  )
  const misses = await api.gauge('sandlot_pool_takes{how="miss"}')
  if (misses > 0) throw new Error(`${misses} sandboxes did not come from the pool`)
  const measured = { unit: 's', samples: samples.ours } as const
  return [
    {
      name: 'burst',
      ...measured,
      reference: samples.plain,
      target: { of: 'ratio', atMost: 0.25 },
      note: `${AT_ONCE} at once, each with a command’s result; reference: ${AT_ONCE} by the raw loop`,
    },
    { name: 'burst.wall', ...measured, target: { of: 'value', atMost: 1.5 } },
  ]
}

/** Two in flight for each processor: a start waits as long as it computes. */
async function inLanes(count: number, work: () => Promise<void>): Promise<void> {
  let left = count
  const lane = async () => {
    while (left-- > 0) await work()
  }
  await Promise.all(Array.from({ length: 2 * availableParallelism() }, lane))
}
