import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { createRandom } from '@sandlot/core/random'
import type { ResultRow } from '@sandlot/protocol'
import { type Run, Sandlot, SandlotError } from 'sandlot'
import type { Bench, BenchContext } from '../bench.ts'
import { type ChaosDriver, chaosTasks } from '../chaos/behaviours.ts'
import { ClientProcess } from '../chaos/client-process.ts'
import { type Kills, killAtRandom } from '../chaos/killer.ts'
import { describeMatrix, type Verdicts, verdictsOf } from '../chaos/matrix.ts'
import { killHelperOf } from '../chaos/sandboxes.ts'
import type { ChaosWork } from '../chaos/work.ts'
import { chaosSeed } from '../config.ts'
import { BenchDaemon, type DaemonSetting, daemonSetting } from '../daemon/daemon.ts'
import { freePort } from '../daemon/free-port.ts'
import { leftovers } from '../daemon/leftovers.ts'
import type { Measured } from '../figure.ts'

interface Scale {
  readonly episodes: number
  readonly concurrency: number
  readonly agentMs: number
}

const LONG_BUDGET_MS = 60_000
const LOOK_MS = 50
/** From then on nothing is killed any more. */
const CALM_SHARE = 0.7

/**
 * A check more than a speed: episodes of all behaviours, good and bad, while daemon, clients and sandboxes are killed at random instants.
 * What is reported of each must be what it was.
 */
export const chaos: Bench = async (context) => {
  const seed = chaosSeed ?? randomBytes(4).readUInt32LE()
  context.note(`chaos: seed ${seed}; SANDLOT_CHAOS_SEED=${seed} gives the same episodes and kills`)
  const long = context.budgetMs > LONG_BUDGET_MS
  return [
    ...(await chaosOn(context, 'fake', seed, { episodes: 1_000, concurrency: 64, agentMs: 3_000 })),
    ...(await chaosOn(context, 'gvisor', seed, {
      episodes: long ? 1_000 : 250,
      concurrency: 6 * availableParallelism(),
      agentMs: 10_000,
    })),
  ]
}

async function chaosOn(
  context: BenchContext,
  driver: ChaosDriver,
  seed: number,
  { episodes, concurrency, agentMs }: Scale,
): Promise<readonly Measured[]> {
  const random = createRandom(seed).next
  const tasks = chaosTasks(driver, episodes, random)
  const { id: from } = await context.image()
  const setting = await settingOf(context, driver)
  const { runDirectory, mark } = setting
  let daemon = await BenchDaemon.start(context, setting)
  context.scope.defer(() => daemon[Symbol.asyncDispose]())
  const { url, apiKey } = daemon
  const work: ChaosWork = { run: `chaos-${seed}`, driver, from, concurrency, agentMs, runDirectory }
  const clients = [1, 2].map(() =>
    context.scope.use(new ClientProcess(context, { ...work, url, apiKey, tasks }, mark)),
  )
  const reader = context.scope.use(new Sandlot({ url, apiKey }))
  const over = new AbortController()
  const read: ResultRow[] = []
  const targets = {
    async killDaemon() {
      await daemon.kill()
      daemon = await BenchDaemon.start(context, setting)
    },
    killClient: async (which: number) => await clients[which % clients.length]?.restart(mark),
    ...(driver === 'gvisor'
      ? { sandboxesIn: runDirectory, killHelper: () => killHelperOf(daemon.pid) }
      : {}),
    // At the end few are left, and would be hit again and again until no attempt is left.
    isCalm: () => read.length > CALM_SHARE * tasks.length,
  }
  const startedMs = performance.now()
  const run = await runOf(reader, work.run, context.signal)
  const killing = killAtRandom(targets, random, AbortSignal.any([over.signal, context.signal]))
  // It may fail before anybody waits for it.
  killing.catch(() => undefined)
  // A daemon that is just being started again must not come up behind the cleaning.
  context.scope.defer(async () => {
    over.abort()
    await killing.catch(() => undefined)
  })
  for await (const row of run.results({ signal: context.signal })) read.push(row)
  over.abort()
  const kills = await killing
  const wallMs = performance.now() - startedMs
  const recorded = await run.wait({ signal: context.signal })
  for (const client of clients) await client[Symbol.asyncDispose]()
  const alive = await Array.fromAsync(reader.sandboxes.list({ state: 'running' }))
  await daemon[Symbol.asyncDispose]()
  const left = [...alive.map(({ id }) => `sandbox ${id}`), ...(await leftovers(setting))]
  const verdicts = verdictsOf(tasks, recorded, kills.sandboxes)
  tell(context, driver, { verdicts, left, kills })
  const twice = read.length - new Set(read.map(({ key }) => key)).size
  return figuresOf(driver, { verdicts, twice, left, kills, seed, wallMs, count: recorded.length })
}

async function settingOf(
  context: BenchContext,
  driver: ChaosDriver,
): Promise<DaemonSetting & { readonly mark: string }> {
  const mark = `bench-${randomBytes(8).toString('hex')}`
  const common = { port: await freePort(), logLevel: 'error' } as const
  if (driver === 'gvisor') return { ...(await daemonSetting(context, common)), mark }
  const roomy = { ...common, memoryBytes: 2 ** 40, cpus: 10_000 }
  const program = fileURLToPath(new URL('../chaos/fake-daemon.ts', import.meta.url))
  return { ...(await daemonSetting(context, roomy)), mark, program }
}

/** As soon as a client has made it. */
async function runOf(reader: Sandlot, name: string, signal: AbortSignal): Promise<Run> {
  for (;;) {
    signal.throwIfAborted()
    try {
      return await reader.rollouts.get(name, { signal })
    } catch (error) {
      const isEarly = error instanceof SandlotError && (error.retry || error.code === 'run_unknown')
      if (!isEarly) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

function tell(
  { note }: BenchContext,
  driver: ChaosDriver,
  { verdicts, left, kills }: { verdicts: Verdicts; left: readonly string[]; kills: Kills },
): void {
  note(`chaos: truth against report on ${driver}; ${killedOf(kills)}`)
  for (const line of describeMatrix(verdicts)) note(`  ${line}`)
  for (const line of verdicts.wrong) note(`chaos: wrong: ${line}`)
  for (const line of left) note(`chaos: left: ${line}`)
}

function killedOf({ daemon, client, helper, sandbox }: Kills): string {
  return `killed: daemon ${daemon} ×, clients ${client} ×, host helper ${helper} ×, sandboxes ${sandbox} ×`
}

function figuresOf(
  driver: ChaosDriver,
  found: {
    readonly verdicts: Verdicts
    readonly twice: number
    readonly left: readonly string[]
    readonly kills: Kills
    readonly seed: number
    readonly wallMs: number
    readonly count: number
  },
): readonly Measured[] {
  const { verdicts, twice, left, kills, seed, wallMs, count } = found
  const none = (name: string, value: number, note?: string): Measured => ({
    name: `chaos.${driver}.${name}`,
    unit: '',
    samples: [value],
    target: { of: 'value', atMost: 0 },
    ...(note === undefined ? {} : { note }),
  })
  return [
    none('wrong', verdicts.wrong.length, `of ${count} episodes, seed ${seed}; ${killedOf(kills)}`),
    none('fabricated', verdicts.fabricated.length, 'zeros of episodes that did not earn one'),
    none('lost', verdicts.lost.length),
    none('doubled', verdicts.doubled.length + twice),
    none('leaked', left.length, 'sandboxes, processes, cgroups, mounts, FIFOs and temporary files'),
    { name: `chaos.${driver}.wall`, unit: 's', samples: [wallMs / 1000] },
  ]
}
