import { setTimeout as wait } from 'node:timers/promises'
import { Sandlot, type TaskQueue } from 'sandlot'
import type { Bench, BenchContext } from '../bench.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import type * as handlers from '../functions/double.ts'
import { PlainWorkers } from '../functions/plain-workers.ts'
import { interleave, ratePerSecond, timed } from '../interleave.ts'

const MODULE = new URL('../functions/double.ts', import.meta.url)
const INPUTS = 10_000
const CONTAINERS = 2
const CONCURRENCY = 32
const IDLE_MS = 2_000
const LOOK_MS = 10

/**
 * `f.map` of many inputs that cost nothing, through containers that are warm; then a queue from no container to all that it wants, and back
 * to none. The references are processes of this machine with the same handler, and nothing between them and this one but a pipe.
 */
export const functions: Bench = async (context) => {
  const setting = await daemonSetting(context, { poolTarget: 4, poolMax: 4 })
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  const client = context.scope.use(new Sandlot(daemon))
  const rates = await mapRates(context, client)
  const scaling = await scale(context, client)
  return [
    {
      name: 'functions.map',
      unit: '/s',
      samples: rates.ours,
      reference: rates.plain,
      target: { of: 'value', atLeast: 500 },
      note: `${INPUTS} inputs, ${CONTAINERS} containers with ${CONCURRENCY} each; reference: as many processes over pipes`,
    },
    {
      name: 'functions.up',
      unit: 'ms',
      samples: scaling.up,
      reference: scaling.plain,
      target: { of: 'value', atMost: 1_000 },
      note: `from a put to ${CONTAINERS} containers that take inputs, from none; reference: as many processes that have answered`,
    },
    {
      name: 'functions.down',
      unit: 'ms',
      samples: scaling.down,
      target: { of: 'value', atMost: 1_000 },
      note: `from the last result to no container, beyond the idle time of ${IDLE_MS} ms`,
    },
  ]
}

async function mapRates(context: BenchContext, client: Sandlot) {
  const double = client.fn<typeof handlers>(MODULE, {
    ...{ export: 'double', concurrency: CONCURRENCY, containers: CONTAINERS },
  })
  await using plain = new PlainWorkers(CONTAINERS)
  await plain.warm()
  const inputs = Array.from({ length: INPUTS }, (_, index) => index)
  const ours = async () => {
    let right = 0
    const elapsedMs = await timed(async () => {
      for await (const row of double.map(inputs, { signal: context.signal })) {
        if (row.ok && row.value === 2 * row.index) right += 1
      }
    })
    if (right !== INPUTS) throw new Error(`${INPUTS - right} values are wrong or missing`)
    return INPUTS / (elapsedMs / 1000)
  }
  return await interleave(
    context,
    { max: 5, share: 0.6 },
    {
      plain: () =>
        ratePerSecond({ total: INPUTS, concurrency: CONTAINERS * CONCURRENCY }, (index) =>
          plain.ask(index, index),
        ),
      ours,
    },
  )
}

async function scale(context: BenchContext, client: Sandlot) {
  const double = client.fn<typeof handlers>(MODULE, { export: 'double' })
  const queue = client.queue('bench', double, {
    autoscale: { tasksPerContainer: 8, maxContainers: CONTAINERS, idle: IDLE_MS },
  })
  await queue.open()
  const down: number[] = []
  const rounds = await interleave(
    context,
    { max: 5, share: 0.4 },
    {
      plain: async () => {
        const started = performance.now()
        await using workers = new PlainWorkers(CONTAINERS)
        await workers.warm()
        return performance.now() - started
      },
      up: async () => {
        const inputs = Array.from({ length: 8 * CONTAINERS }, (_, index) => index)
        const startedMs = performance.now()
        let ready = 0
        const watching = containersOf(queue, (count) => count >= CONTAINERS).then(() => {
          ready = performance.now()
        })
        await queue.putMany(inputs)
        await watching
        let lastMs = 0
        for await (const row of queue.results({ until: 'empty' })) {
          lastMs = Math.max(lastMs, row.endedAtMs)
        }
        await containersOf(queue, (count) => count === 0)
        down.push(Date.now() - lastMs - IDLE_MS)
        return ready - startedMs
      },
    },
  )
  return { up: rounds.up, plain: rounds.plain, down: down.slice(1) }
}

async function containersOf(
  queue: TaskQueue<number, number>,
  holds: (count: number) => boolean,
): Promise<void> {
  while (!holds((await queue.view()).containers.ready)) await wait(LOOK_MS)
}
