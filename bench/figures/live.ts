import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import type { SandboxView } from '@sandlot/protocol'
import { Image, Sandlot } from 'sandlot'
import type { Bench, BenchContext } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { leftovers } from '../daemon/leftovers.ts'
import { detectCgroups } from '../inside.ts'
import { timed } from '../interleave.ts'
import { inLanes } from '../lanes.ts'
import { proportionalBytes } from '../processes.ts'
import { TRUE_COMMAND } from '../spec.ts'
import { median } from '../statistics.ts'

const MB = 1e6
const LIVE = 1_000
const IN_FLIGHT = 8
/** Of so many one is looked at: each has a share of what all of them have. */
const LOOK_AT_ONE_OF = 10
const CLEAN_WITHIN_MS = 60_000
/** What a thousand that idle ask for together fits on a small machine. */
const RESOURCES = {
  cpu: { request: 0.01, limit: 1 },
  memory: { request: '12MiB', limit: '256MiB' },
}

/** Very many sandboxes at once, of one template: what each takes, whether each answers, and that nothing is left of them. */
export const live: Bench = async (context) => {
  const mark = `bench-${randomBytes(8).toString('hex')}`
  const setting = { ...(await daemonSetting(context, {})), mark }
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  const from = await template(daemon, (await context.image()).id)
  using api = new Api(daemon, { connections: IN_FLIGHT })
  const ids: string[] = []
  const startMs = await timed(() =>
    each(Array.from({ length: LIVE }), context, async () => {
      ids.push((await api.json<SandboxView>('POST', '/v1/sandboxes', { from })).id)
    }),
  )
  const commands: number[] = []
  await each(ids, context, async (id) => {
    const path = `/v1/sandboxes/${id}/exec`
    commands.push(await timed(() => api.json('POST', path, { command: TRUE_COMMAND })))
  })
  const megabytes = await proportional(setting.runDirectory)
  await each(ids, context, async (id) => void (await api.json('DELETE', `/v1/sandboxes/${id}`)))
  await daemon[Symbol.asyncDispose]()
  const left = await untilClean(() => leftovers(setting), context)
  return [
    {
      name: 'live',
      unit: 'MB',
      samples: megabytes,
      target: { of: 'value', atMost: 12 },
      note: `proportional set size of all host processes of one, ${LIVE} alive, each after a command`,
    },
    {
      name: 'live.command',
      unit: 'ms',
      samples: commands,
      note: `a command in each, ${IN_FLIGHT} in flight`,
    },
    {
      name: 'live.start',
      unit: '/s',
      samples: [LIVE / (startMs / 1000)],
      note: `${IN_FLIGHT} in flight`,
    },
    {
      name: 'live.leaks',
      unit: '',
      samples: [left],
      target: { of: 'value', atMost: 0 },
    },
  ]
}

async function template(daemon: BenchDaemon, image: string): Promise<string> {
  await using client = new Sandlot(daemon)
  return (await client.prepare({ from: Image.fromId(image), resources: RESOURCES })).id
}

function each<T>(
  items: readonly T[],
  context: BenchContext,
  work: (item: T) => Promise<void>,
): Promise<void> {
  return inLanes(items, IN_FLIGHT, context, work)
}

/** Of some sandboxes of the daemon, what all their processes take. */
async function proportional(runDirectory: string): Promise<readonly number[]> {
  const names = await readdir(runDirectory)
  const cgroups = names
    .filter((name) => name.startsWith('sandlot-'))
    .map((name) => detectCgroups(name))
  const samples: number[] = []
  for (const found of cgroups) {
    const hostIds = (await found?.list()) ?? []
    for (const hostId of hostIds.filter((_, index) => index % LOOK_AT_ONE_OF === 0)) {
      const pids = (await found?.leaf(hostId).processes()) ?? []
      samples.push(pids.reduce((sum, pid) => sum + proportionalBytes(pid), 0) / MB)
    }
  }
  if (samples.length < LIVE / LOOK_AT_ONE_OF || median(samples) === 0) {
    throw new Error(`only ${samples.length} sandboxes were found`)
  }
  return samples
}

async function untilClean(
  look: () => Promise<readonly string[]>,
  { note }: BenchContext,
): Promise<number> {
  const endMs = performance.now() + CLEAN_WITHIN_MS
  for (;;) {
    const left = await look()
    if (left.length === 0 || performance.now() > endMs) {
      for (const line of left.slice(0, 10)) note(`live: left: ${line}`)
      return left.length
    }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
