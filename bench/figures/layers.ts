import type { SandboxView } from '@sandlot/protocol'
import { Image, Sandlot } from 'sandlot'
import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { poolFull } from '../daemon/pool.ts'
import { interleave, timed } from '../interleave.ts'
import { TRUE_COMMAND } from '../spec.ts'

const LAYERS = 10

/** Sandboxes of the API from the pool, of an image with ten layers in turn with one of a single layer, over plain HTTP. */
export const layers: Bench = async (context) => {
  const { id: one } = await context.image()
  const daemon = context.scope.use(
    await BenchDaemon.start(context, await daemonSetting(context, {})),
  )
  const ten = await layered(daemon, one)
  using api = new Api(daemon)
  const started = async (from: string) => {
    await poolFull(api, context)
    let id = ''
    const elapsedMs = await timed(async () => {
      ;({ id } = await api.json<SandboxView>('POST', '/v1/sandboxes', { from }))
      await api.json('POST', `/v1/sandboxes/${id}/exec`, { command: TRUE_COMMAND })
    })
    await api.json('DELETE', `/v1/sandboxes/${id}`)
    return elapsedMs
  }
  // The pool waits for who came last, so both come after one of their own.
  const measured = (from: string) => async () => {
    await started(from)
    return await started(from)
  }
  const samples = await interleave(
    context,
    { max: 100 },
    { one: measured(one), ten: measured(ten) },
  )
  return [
    {
      name: 'layers',
      unit: 'ms',
      samples: samples.ten,
      reference: samples.one,
      target: { of: 'ratio', atMost: 1.5 },
      note: `an image of ${LAYERS} layers; reference: of one. From the pool, after one of the same image`,
    },
  ]
}

/** Built once, and kept in the cache with the base. */
async function layered(daemon: BenchDaemon, base: string): Promise<string> {
  await using client = new Sandlot(daemon)
  let description = Image.fromId(base).network('none')
  for (let layer = 1; layer < LAYERS; layer++)
    description = description.run(`echo ${layer} > /layer-${layer}`)
  const { id, layers: made } = await client.images.build(description)
  if (made.length !== LAYERS) throw new Error(`the image has ${made.length} layers, not ${LAYERS}`)
  return id
}
