import { availableParallelism } from 'node:os'
import { Sandlot } from 'sandlot'
import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { poolFull } from '../daemon/pool.ts'
import { interleave, ratePerSecond } from '../interleave.ts'
import { RawMachine } from '../raw/machine.ts'
import { startWorldToResult } from '../raw/world.ts'
import { benchSpec, TRUE_COMMAND } from '../spec.ts'

const POOL = 4 * availableParallelism()

/**
 * Whole episodes: created, one command, graded by a command in a second world, torn down, recorded; by the SDK in this process and a
 * daemon in another. The pool is full when a slice begins and the slice ends when it is full again, so that no start is had
 * for free. The raw loops start a sandbox, have one result and kill it, as many at a
 * time; one of them opens a world for it.
 */
export const episodes: Bench = async (context) => {
  const image = await context.image()
  const raw = await RawMachine.open(context)
  // As many wait after a slice as before it.
  const pool = { poolTarget: POOL, poolMax: POOL }
  const daemon = context.scope.use(
    await BenchDaemon.start(context, await daemonSetting(context, pool)),
  )
  const client = context.scope.use(new Sandlot(daemon))
  using api = new Api(daemon)
  const concurrency = 2 * availableParallelism()
  const total = 6 * concurrency
  const ours = async () => {
    await poolFull(api, context)
    const startedMs = performance.now()
    await runEpisodes(client, { from: image.id, total, concurrency, signal: context.signal })
    await poolFull(api, context)
    return total / ((performance.now() - startedMs) / 1000)
  }
  const samples = await interleave(
    context,
    { max: 6 },
    {
      plain: () =>
        ratePerSecond({ total, concurrency }, async () =>
          (await raw.startToResult(benchSpec(image))).end(),
        ),
      world: () =>
        ratePerSecond({ total, concurrency }, async () =>
          (await startWorldToResult(raw, benchSpec(image))).end(),
        ),
      ours,
    },
  )
  const target = { of: 'ratio', atLeast: 0.8 } as const
  const measured = { unit: '/s', samples: samples.ours, target }
  return [
    {
      name: 'episodes',
      ...measured,
      reference: samples.plain,
      note: `raw loop without a world; ${concurrency} in flight, slices of ${total}`,
    },
    {
      name: 'episodes.world',
      ...measured,
      reference: samples.world,
      note: 'raw loop that opens one world; ours opens two',
    },
  ]
}

async function runEpisodes(
  client: Sandlot,
  options: {
    readonly from: string
    readonly total: number
    readonly concurrency: number
    readonly signal: AbortSignal
  },
): Promise<void> {
  const { from, total, concurrency, signal } = options
  const tasks = Array.from({ length: total }, (_, index) => index)
  const run = client.rollouts.map(
    tasks,
    async ({ sandbox }) => {
      await sandbox.exec(TRUE_COMMAND)
    },
    { from, concurrency, grade: { run: TRUE_COMMAND, in: 'world' }, signal },
  )
  const rows = await run.wait({ signal })
  const wrong = rows.filter(({ outcome, reward }) => outcome !== 'graded' || reward !== 1)
  if (rows.length === total && wrong.length === 0) return
  const why = wrong[0] ? `${wrong[0].outcome}: ${wrong[0].error}` : `${rows.length} rows`
  throw new Error(`${wrong.length} of ${total} episodes were not graded 1 (${why})`)
}
