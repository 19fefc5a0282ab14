import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { savedServer, timeStart } from '../daemon/saved.ts'
import { interleave } from '../interleave.ts'
import { RawAgent } from '../raw/agent.ts'
import { RawMachine } from '../raw/machine.ts'
import { benchSpec } from '../spec.ts'

/** Sandboxes from a memory snapshot over plain HTTP, one at a time, while nothing waits; against raw `runsc restore` of the same memory. */
export const restore: Bench = async (context) => {
  const image = await context.image()
  const setting = await daemonSetting(context, { poolTarget: 0 })
  const { dataDirectory } = setting
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  using api = new Api(daemon)
  const from = await savedServer(api, image.id)
  // The agent's image is found by its path.
  const raw = await RawMachine.open(context, join(dataDirectory, 'runtime'))
  const [name = ''] = await readdir(join(dataDirectory, 'checkpoints'))
  const directory = join(dataDirectory, 'checkpoints', name)
  const checkpoint = { directory, identity: join(directory, 'identity') }
  const rounds = { max: 60, warmUp: 2 }
  const samples = await interleave(context, rounds, {
    raw: async () => {
      const startedMs = performance.now()
      const sandbox = await raw.start('agent', benchSpec(image), checkpoint)
      await RawAgent.attach(sandbox.pipes)
      const elapsedMs = performance.now() - startedMs
      await sandbox.end()
      return elapsedMs
    },
    ours: () => timeStart(api, from, 'restored'),
  })
  return [
    {
      name: 'restore.p50',
      unit: 'ms',
      samples: samples.ours,
      reference: samples.raw,
      target: { of: 'ratio', atMost: 1.1 },
      note: 'create over HTTP; reference: raw runsc restore until its agent answers',
    },
  ]
}
