import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { ResultRow } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import type { Bench } from '../bench.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { freePort } from '../daemon/free-port.ts'
import { leftovers } from '../daemon/leftovers.ts'
import { TRUE_COMMAND } from '../spec.ts'

const TOTAL = 500
/** The daemon is killed when so many results were read. */
const KILLS_AT = [Math.floor(TOTAL / 3), Math.floor((2 * TOTAL) / 3)]
const EPISODE_MS = 200

/** More a check than a speed: a batch on gVisor whose daemon is killed twice and started again. */
export const crash: Bench = async (context) => {
  const { id: from } = await context.image()
  const mark = `bench-${randomBytes(8).toString('hex')}`
  const setting = { ...(await daemonSetting(context, { port: await freePort() })), mark }
  let daemon = await BenchDaemon.start(context, setting)
  context.scope.defer(() => daemon[Symbol.asyncDispose]())
  const client = context.scope.use(new Sandlot({ url: daemon.url, apiKey: daemon.apiKey }))

  const startedMs = performance.now()
  const run = client.rollouts.map(
    Array.from({ length: TOTAL }, (_, index) => index),
    async ({ sandbox }) => {
      await sandbox.exec(TRUE_COMMAND)
      // So that many are in the middle of something when the daemon dies.
      await new Promise((resolve) => setTimeout(resolve, EPISODE_MS))
    },
    {
      from,
      concurrency: 4 * availableParallelism(),
      grade: { run: TRUE_COMMAND, in: 'world' },
      signal: context.signal,
    },
  )
  const rows: ResultRow[] = []
  for await (const row of run.results({ signal: context.signal })) {
    rows.push(row)
    if (!KILLS_AT.includes(rows.length)) continue
    await daemon.kill()
    context.note(`crash: the daemon was killed after ${rows.length} results`)
    daemon = await BenchDaemon.start(context, setting)
  }
  const wallMs = performance.now() - startedMs
  const recorded = await (await client.rollouts.get(run.name)).wait()
  const sandboxes = await Array.fromAsync(client.sandboxes.list({ state: 'running' }))
  await daemon[Symbol.asyncDispose]()
  const left = [...sandboxes.map(({ id }) => `sandbox ${id}`), ...(await leftovers(setting))]
  for (const line of left) context.note(`crash: left: ${line}`)
  const keys = new Set(recorded.map(({ key }) => key))
  return [
    {
      name: 'crash.results',
      unit: '',
      samples: [keys.size],
      target: { of: 'value', atLeast: TOTAL },
      note: outcomes(recorded),
    },
    {
      name: 'crash.doubles',
      unit: '',
      samples: [recorded.length - keys.size + Math.max(0, rows.length - recorded.length)],
      target: { of: 'value', atMost: 0 },
    },
    {
      name: 'crash.leaks',
      unit: '',
      samples: [left.length],
      target: { of: 'value', atMost: 0 },
      note: 'sandboxes, processes, cgroups, mounts, FIFOs and temporary files',
    },
    { name: 'crash.wall', unit: 's', samples: [wallMs / 1000] },
  ]
}

function outcomes(rows: readonly ResultRow[]): string {
  const counts = Object.groupBy(rows, ({ outcome, reward }) => `${outcome} ${reward ?? 'null'}`)
  return Object.entries(counts)
    .map(([outcome, found]) => `${found?.length} × ${outcome}`)
    .join(', ')
}
