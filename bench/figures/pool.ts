import type { SandboxView } from '@sandlot/protocol'
import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { poolFull } from '../daemon/pool.ts'
import { TRUE_COMMAND } from '../spec.ts'

const SAMPLES_MAX = 300
const WARM_UP = 3

/** Sandboxes of the API from a pool of blanks that is full each time, one at a time, over plain HTTP. */
export const pool: Bench = async (context) => {
  const { id: from } = await context.image()
  const daemon = context.scope.use(
    await BenchDaemon.start(context, await daemonSetting(context, {})),
  )
  using api = new Api(daemon)
  const checkouts: number[] = []
  const results: number[] = []
  const endMs = performance.now() + context.budgetMs
  for (let sample = -WARM_UP; sample < SAMPLES_MAX && performance.now() < endMs; sample++) {
    await poolFull(api, context)
    const startedMs = performance.now()
    const { id } = await api.json<SandboxView>('POST', '/v1/sandboxes', { from })
    const openMs = performance.now()
    await api.json('POST', `/v1/sandboxes/${id}/exec`, { command: TRUE_COMMAND })
    const doneMs = performance.now()
    await api.json('DELETE', `/v1/sandboxes/${id}`)
    if (sample < 0) continue
    checkouts.push(openMs - startedMs)
    results.push(doneMs - startedMs)
  }
  const misses = await api.gauge('sandlot_pool_takes{how="miss"}')
  if (misses > 0) throw new Error(`${misses} sandboxes did not come from the pool`)
  const note = `${results.length} sandboxes, the pool full before each`
  return [
    {
      name: 'pool.p50',
      unit: 'ms',
      samples: results,
      target: { of: 'value', atMost: 10 },
      note,
    },
    {
      name: 'pool.p99',
      unit: 'ms',
      samples: results,
      at: 0.99,
      target: { of: 'value', atMost: 30 },
    },
    { name: 'pool.checkout', unit: 'ms', samples: checkouts, note: 'create alone, p50' },
  ]
}
