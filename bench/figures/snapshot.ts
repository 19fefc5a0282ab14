import type { SandboxView, SnapshotView } from '@sandlot/protocol'
import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'

const SAMPLES_MIN = 3
const SAMPLES_MAX = 20
const WARM_UP = 1
/** A sample takes a sandbox of its own: a snapshot of one that has many below it is another matter. */
const SUBJECTS = [
  {
    name: 'snapshot',
    target: { of: 'value', atMost: 400 },
    note: '20 MB in 200 files: from the request to the answer, when sandboxes can start from it',
    write: 'for n in range(200): open(f"/work/{n}", "wb").write(os.urandom(100_000))',
  },
  {
    name: 'snapshot.small-files',
    target: undefined,
    note: '20,000 files of 100 bytes in 200 directories',
    write:
      'for d in range(200):\n os.mkdir(f"/work/{d}")\n for n in range(100): open(f"/work/{d}/{n}", "wb").write(os.urandom(100))',
  },
] as const

/** The difference of a sandbox saved as a layer, over plain HTTP. */
export const snapshot: Bench = async (context) => {
  const { id: from } = await context.image()
  const daemon = context.scope.use(
    await BenchDaemon.start(context, await daemonSetting(context, {})),
  )
  using api = new Api(daemon)
  const figures = []
  for (const { name, target, note, write } of SUBJECTS) {
    const samples: number[] = []
    const endMs = performance.now() + context.budgetMs / SUBJECTS.length
    const more = (sample: number) => sample < SAMPLES_MIN || performance.now() < endMs
    for (let sample = -WARM_UP; sample < SAMPLES_MAX && more(sample); sample++) {
      const { id } = await api.json<SandboxView>('POST', '/v1/sandboxes', { from })
      const program = `import os\nos.mkdir("/work")\n${write}`
      await api.json('POST', `/v1/sandboxes/${id}/exec`, { command: ['python3', '-c', program] })
      const startedMs = performance.now()
      const path = `/v1/sandboxes/${id}/snapshots`
      const { sizeBytes } = await api.json<SnapshotView>('POST', path, { kind: 'filesystem' })
      const elapsedMs = performance.now() - startedMs
      if (sizeBytes < 2_000_000) throw new Error(`the snapshot has only ${sizeBytes} bytes`)
      await api.json('DELETE', `/v1/sandboxes/${id}`)
      if (sample >= 0) samples.push(elapsedMs)
    }
    figures.push({ name, unit: 'ms', samples, note, ...(target ? { target } : {}) })
  }
  return figures
}
