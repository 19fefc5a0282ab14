import type { ExecEnd, SandboxView } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { interleave } from '../interleave.ts'
import { TRUE_COMMAND } from '../spec.ts'

/** What a command costs beside itself: the time at the client minus the time that the agent measured inside. */
export const exec: Bench = async (context) => {
  const { id: from } = await context.image()
  const setting = await daemonSetting(context, { poolTarget: 0 })
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  const client = context.scope.use(new Sandlot(daemon))
  using api = new Api(daemon)
  const { id } = await api.json<SandboxView>('POST', '/v1/sandboxes', { from })
  const sandbox = await client.sandboxes.get(id)
  const inside: number[] = []
  const added = async (run: () => Promise<Pick<ExecEnd, 'durationMs' | 'exitCode'>>) => {
    const startedMs = performance.now()
    const { durationMs, exitCode } = await run()
    const elapsedMs = performance.now() - startedMs
    if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`)
    inside.push(durationMs)
    return elapsedMs - durationMs
  }
  const path = `/v1/sandboxes/${id}/exec`
  const samples = await interleave(
    context,
    { max: 500, warmUp: 20 },
    {
      http: () => added(() => api.json('POST', path, { command: TRUE_COMMAND })),
      socket: () => added(() => sandbox.exec(TRUE_COMMAND)),
    },
  )
  await sandbox.stop()
  const target = { of: 'value', atMost: 2 } as const
  return [
    {
      name: 'exec.http',
      unit: 'ms',
      samples: samples.http,
      target,
      note: 'added to exec.inside',
    },
    { name: 'exec.websocket', unit: 'ms', samples: samples.socket, target },
    {
      name: 'exec.inside',
      unit: 'ms',
      samples: inside,
      note: '`true`, as the agent measures it',
    },
  ]
}
