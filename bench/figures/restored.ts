import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { poolFull } from '../daemon/pool.ts'
import { savedServer, timeStart } from '../daemon/saved.ts'

const SAMPLES_MAX = 300
const WARM_UP = 3
const WAITING = 4

/** Sandboxes from a memory snapshot over plain HTTP, one at a time, while copies wait that were restored ahead. */
export const restored: Bench = async (context) => {
  const { id: image } = await context.image()
  const setting = await daemonSetting(context, {})
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  using api = new Api(daemon)
  const from = await savedServer(api, image)
  // A burst, so that as many wait from then on.
  using burst = new Api(daemon, { connections: WAITING })
  await Promise.all(Array.from({ length: WAITING }, () => timeStart(burst, from, 'restored')))
  const samples: number[] = []
  const endMs = performance.now() + context.budgetMs
  for (let sample = -WARM_UP; sample < SAMPLES_MAX && performance.now() < endMs; sample++) {
    await poolFull(api, context)
    await poolFull(api, context, 'copies')
    const elapsedMs = await timeStart(api, from, 'restored-ahead')
    if (sample >= 0) samples.push(elapsedMs)
  }
  return [
    {
      name: 'restored.checkout',
      unit: 'ms',
      samples,
      target: { of: 'value', atMost: 3 },
      note: `create alone, p50; ${samples.length} sandboxes, ${WAITING} copies waiting before each`,
    },
    {
      name: 'restored.checkout-tail',
      unit: 'ms',
      samples,
      at: 0.99,
      target: { of: 'value', atMost: 15 },
      note: 'p99',
    },
  ]
}
