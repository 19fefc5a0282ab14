import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { ForkAnswer, SandboxView } from '@sandlot/protocol'
import type { SandboxSpec } from '@sandlot/runtime'
import type { Bench, BenchContext } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { interleave, timed } from '../interleave.ts'
import { RawAgent } from '../raw/agent.ts'
import { RawMachine, type RawSandbox } from '../raw/machine.ts'
import { startWorldToResult } from '../raw/world.ts'
import { benchSpec, TRUE_COMMAND } from '../spec.ts'
import { temporaryDirectory } from '../temporary.ts'

const COPIES = 10

/**
 * Ten copies of an idle sandbox, from the request to the answer with all of them: its memory is saved, restored ten times, and each copy
 * told who it is. The raw side restores ten from memory that was saved before, until the agent of each has answered.
 */
export const fork: Bench = async (context) => {
  const image = await context.image()
  const restore = await rawRestores(context, benchSpec(image))
  const daemon = context.scope.use(
    await BenchDaemon.start(context, await daemonSetting(context, { poolTarget: 0 })),
  )
  using api = new Api(daemon)
  const asked = { from: image.id, checkpointable: true }
  const { id } = await api.json<SandboxView>('POST', '/v1/sandboxes', asked)
  await api.json('POST', `/v1/sandboxes/${id}/exec`, { command: TRUE_COMMAND })
  const ours = async () => {
    let copies: string[] = []
    const elapsedMs = await timed(async () => {
      const path = `/v1/sandboxes/${id}/fork`
      const { items } = await api.json<ForkAnswer>('POST', path, { count: COPIES })
      copies = items.map((item) => {
        if ('error' in item) throw new Error(`a copy failed: ${item.error.message}`)
        return item.sandbox.id
      })
    })
    for (const copy of copies) await api.json('DELETE', `/v1/sandboxes/${copy}`)
    return elapsedMs
  }
  const samples = await interleave(context, { max: 10 }, { raw: restore, ours })
  return [
    {
      name: 'fork',
      unit: 'ms',
      samples: samples.ours,
      reference: samples.raw,
      target: { of: 'ratio', atMost: 1.2 },
      note: `${COPIES} copies with their memory, saved for it; reference: ${COPIES} raw restores`,
    },
  ]
}

/** Saves the memory of a raw sandbox with a world, and gives what restores ten of it and ends them. */
async function rawRestores(
  context: BenchContext,
  spec: SandboxSpec,
): Promise<() => Promise<number>> {
  const raw = await RawMachine.open(context)
  const directory = join(await temporaryDirectory(context), 'checkpoint')
  const origin = await startWorldToResult(raw, spec)
  await origin.checkpoint(directory)
  await origin.end()
  return async () => {
    const restored: RawSandbox[] = []
    let left = COPIES
    const lane = async () => {
      while (left-- > 0) {
        const each = await raw.start('agent', spec, { directory })
        restored.push(each)
        await RawAgent.attach(each.pipes)
      }
    }
    const elapsedMs = await timed(() =>
      Promise.all(Array.from({ length: 2 * availableParallelism() }, lane)),
    )
    await Promise.all(restored.map((each) => each.end()))
    return elapsedMs
  }
}
