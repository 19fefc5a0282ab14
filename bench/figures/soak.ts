import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { SandboxView } from '@sandlot/protocol'
import type { Bench, BenchContext } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { leftovers } from '../daemon/leftovers.ts'
import { poolFull } from '../daemon/pool.ts'
import type { Measured } from '../figure.ts'
import { timed } from '../interleave.ts'
import { inLanes } from '../lanes.ts'
import { TRUE_COMMAND } from '../spec.ts'
import { median } from '../statistics.ts'

const LIVES = 400
const LIVES_LONG = 5_000
const LONG_BUDGET_MS = 60_000
const SLICES = 20
/** As many wait at the beginning and at the end. */
const POOL = 8
const MB = 1e6

/** What the daemon and the machine have after one slice of the lives, when none of them lives any more. */
interface Look {
  /** Of a life, in the slice. */
  readonly ms: number
  readonly memoryMb: number
  /** Descriptors of the daemon. */
  readonly descriptors: number
  /** Everything below its run directory. */
  readonly files: number
}

/** Very many sandboxes, one after the other: nothing of the daemon or the machine grows with how many there were. */
export const soak: Bench = async (context) => {
  const { id: from } = await context.image()
  const lives = context.budgetMs > LONG_BUDGET_MS ? LIVES_LONG : LIVES
  const lanes = 2 * availableParallelism()
  const mark = `bench-${randomBytes(8).toString('hex')}`
  const setting = { ...(await daemonSetting(context, { poolTarget: POOL, poolMax: POOL })), mark }
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  using api = new Api(daemon, { connections: lanes })
  const life = async () => {
    const { id } = await api.json<SandboxView>('POST', '/v1/sandboxes', { from })
    await api.json('POST', `/v1/sandboxes/${id}/exec`, { command: TRUE_COMMAND })
    await api.json('DELETE', `/v1/sandboxes/${id}`)
  }
  const looks: Look[] = []
  for (let slice = 0; slice <= SLICES; slice++) {
    const times: number[] = []
    const count = Array.from({ length: Math.ceil(lives / SLICES) })
    await inLanes(count, lanes, context, async () => void times.push(await timed(life)))
    await poolFull(api, context)
    // The first slice brings everything to its working size.
    if (slice > 0) looks.push(lookAt(daemon, setting.runDirectory, median(times)))
    if (slice % 5 === 0) tell(context, slice, looks)
  }
  await daemon[Symbol.asyncDispose]()
  const left = await leftovers(setting)
  for (const line of left) context.note(`soak: left: ${line}`)
  return figuresOf(looks, left.length, lives)
}

function figuresOf(looks: readonly Look[], left: number, lives: number): readonly Measured[] {
  const third = Math.floor(looks.length / 3)
  const [first, last] = [looks.slice(0, third), looks.slice(-third)]
  const perThousand = (of: (look: Look) => number) =>
    slope(looks.map(of)) * (1_000 / lives) * looks.length
  return [
    {
      name: 'soak',
      unit: 'ms',
      samples: last.map(({ ms }) => ms),
      reference: first.map(({ ms }) => ms),
      target: { of: 'ratio', atMost: 1.1 },
      note: `a life in the last third of ${lives}, against one in the first`,
    },
    {
      name: 'soak.memory',
      unit: 'MB',
      samples: [perThousand(({ memoryMb }) => memoryMb)],
      reference: first.map(({ memoryMb }) => memoryMb),
      note: 'how much the daemon grew for each 1,000 sandboxes, by a line through all looks; the reference is what it had at first',
    },
    {
      name: 'soak.descriptors',
      unit: '',
      samples: last.map(({ descriptors }) => descriptors),
      reference: first.map(({ descriptors }) => descriptors),
      target: { of: 'ratio', atMost: 1.05 },
      note: 'open in the daemon',
    },
    {
      name: 'soak.files',
      unit: '',
      samples: last.map(({ files }) => files),
      reference: first.map(({ files }) => files),
      target: { of: 'ratio', atMost: 1.05 },
      note: 'below the run directory, of what waits in the pool',
    },
    {
      name: 'soak.leaks',
      unit: '',
      samples: [left],
      target: { of: 'value', atMost: 0 },
      note: 'processes, cgroups, mounts, FIFOs and files, when the daemon was stopped',
    },
  ]
}

function lookAt(daemon: BenchDaemon, runDirectory: string, ms: number): Look {
  return {
    ms,
    memoryMb: daemon.memoryBytes().now / MB,
    descriptors: readdirSync(`/proc/${daemon.pid}/fd`).length,
    files: readdirSync(runDirectory, { recursive: true }).length,
  }
}

function tell({ note }: BenchContext, slice: number, looks: readonly Look[]): void {
  const look = looks.at(-1)
  if (!look) return
  const { ms, memoryMb, descriptors, files } = look
  note(
    `soak: ${slice}/${SLICES}: ${ms.toFixed(0)} ms, ${memoryMb.toFixed(0)} MB, ${descriptors} descriptors, ${files} files`,
  )
}

/** Of the line through the values that misses them least: how much it rises from one to the next. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const rises = values.reduce((sum, value, index) => sum + (index - middle) * (value - mean), 0)
  return rises / values.reduce((sum, _, index) => sum + (index - middle) ** 2, 0)
}
