import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { createRandom } from '@sandlot/core/random'
import type { ResultRow } from '@sandlot/protocol'
import { type Run, Sandlot, SandlotError } from 'sandlot'
import type { Bench, BenchContext } from '../bench.ts'
import {
  CHAOS_WORKERS,
  type ChaosDriver,
  type ChaosTask,
  type ChaosWorker,
  chaosTasks,
} from '../chaos/behaviours.ts'
import { ClientProcess } from '../chaos/client-process.ts'
import type * as functionWork from '../chaos/function-work.ts'
import { HOST_FUNCTION } from '../chaos/host-containers.ts'
import { type Kills, killAtRandom } from '../chaos/killer.ts'
import { describeMatrix, type Verdicts, verdictsOf } from '../chaos/matrix.ts'
import { serveModel } from '../chaos/model.ts'
import { programOptions } from '../chaos/program-work.ts'
import { killAnyContainer, killFunctionOf, killHelperOf } from '../chaos/sandboxes.ts'
import { type ChaosWork, chaosOptions } from '../chaos/work.ts'
import { chaosSeed } from '../config.ts'
import { BenchDaemon, type DaemonSetting, daemonSetting } from '../daemon/daemon.ts'
import { freePort } from '../daemon/free-port.ts'
import { leftovers } from '../daemon/leftovers.ts'
import type { Measured } from '../figure.ts'

type Work = typeof functionWork

interface Scale {
  readonly episodes: number
  readonly concurrency: number
  readonly agentMs: number
}

const LONG_BUDGET_MS = 60_000
const LOOK_MS = 50
/** Who runs how many of the episodes. */
const SHARES = { clients: 0.5, functions: 0.25, programs: 0.25 } satisfies Record<
  ChaosWorker,
  number
>
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
  const count = (worker: ChaosWorker) => Math.round(episodes * SHARES[worker])
  const [tasks, ...others] = CHAOS_WORKERS.map((worker) =>
    chaosTasks({ driver, worker }, count(worker), random),
  ) as [ChaosTask[], ...ChaosTask[][]]
  const [inFunctions = [], inPrograms = []] = others
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
  const { url: model } = context.scope.use(await serveModel())
  const alone = { ...work, concurrency: Math.ceil(concurrency / 2), signal: context.signal }
  const byItself = [
    await startFunctions(reader, { ...alone, tasks: inFunctions }),
    await startPrograms(reader, { ...alone, tasks: inPrograms }, model),
  ]
  const targets = {
    killContainer: async () =>
      driver === 'gvisor'
        ? await killAnyContainer(runDirectory)
        : killFunctionOf(daemon.pid, HOST_FUNCTION),
    async killDaemon() {
      await daemon.kill()
      daemon = await BenchDaemon.start(context, setting)
    },
    killClient: async (which: number) => await clients[which % clients.length]?.restart(mark),
    ...(driver === 'gvisor'
      ? { sandboxesIn: runDirectory, killHelper: () => killHelperOf(daemon.pid) }
      : {}),
    // At the end few are left, and would be hit again and again until no attempt is left.
    isCalm: () => read.length > CALM_SHARE * episodes,
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
  const runs = [run, ...byItself]
  const follow = async (each: Run) => {
    for await (const row of each.results({ signal: context.signal })) read.push(row)
  }
  await Promise.all(runs.map(follow))
  over.abort()
  const kills = await killing
  const wallMs = performance.now() - startedMs
  const { signal } = context
  const recorded = (await Promise.all(runs.map((each) => each.wait({ signal })))).flat()
  for (const client of clients) await client[Symbol.asyncDispose]()
  const alive = await Array.fromAsync(reader.sandboxes.list({ state: 'running' }))
  await daemon[Symbol.asyncDispose]()
  const left = [...alive.map(({ id }) => `sandbox ${id}`), ...(await leftovers(setting))]
  const all = [...tasks, ...inFunctions, ...inPrograms]
  const verdicts = verdictsOf(all, recorded, kills.sandboxes)
  tell(context, driver, { tasks: all, recorded, verdicts, left, kills })
  const twice = read.length - new Set(read.map(({ key }) => key)).size
  return figuresOf(driver, { verdicts, twice, left, kills, seed, wallMs, count: recorded.length })
}

type RunByItself = ChaosWork & {
  readonly tasks: readonly ChaosTask[]
  readonly signal: AbortSignal
}

/** A run whose worker is the daemon. */
async function startPrograms(
  client: Sandlot,
  { tasks, signal, ...work }: RunByItself,
  model: string,
) {
  const options = programOptions({ ...work, run: `${work.run}-programs` }, model)
  const run = client.rollouts.program(tasks, { ...options, signal })
  await run.submitted
  return run
}

/** A run whose worker is a function: nobody has to be there for it. */
async function startFunctions(client: Sandlot, { tasks, signal, ...work }: RunByItself) {
  const module = new URL('../chaos/function-work.ts', import.meta.url)
  const options = { resources: { memory: '256MiB' }, concurrency: 4, containers: 4 }
  const episode = client.fn<Work, 'episode'>(module, { export: 'episode', ...options })
  const grade = client.fn<Work, 'grade'>(module, { export: 'grade' })
  const given = tasks.map((task) => ({ ...task, driver: work.driver }))
  const run = client.rollouts.map(given, episode, {
    ...chaosOptions(work),
    name: `${work.run}-functions`,
    grade: { in: 'world', run: grade },
    signal,
  })
  await run.submitted
  return run
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
  found: {
    readonly tasks: readonly ChaosTask[]
    readonly recorded: readonly ResultRow[]
    readonly verdicts: Verdicts
    readonly left: readonly string[]
    readonly kills: Kills
  },
): void {
  const { tasks, recorded, verdicts, left, kills } = found
  note(`chaos: on ${driver}; ${killedOf(kills)}`)
  for (const worker of CHAOS_WORKERS) {
    const isOf = (key: string) => key.startsWith(`${worker}/`)
    const own = tasks.filter(({ id }) => isOf(id))
    const rows = recorded.filter(({ key }) => isOf(key))
    note(`chaos: truth against report of ${rows.length} episodes by ${worker}`)
    for (const line of describeMatrix(verdictsOf(own, rows, kills.sandboxes))) note(`  ${line}`)
  }
  for (const line of verdicts.wrong) note(`chaos: wrong: ${line}`)
  for (const line of left) note(`chaos: left: ${line}`)
}

function killedOf({ daemon, client, container, helper, sandbox }: Kills): string {
  return `killed: daemon ${daemon} ×, clients ${client} ×, containers of functions ${container} ×, host helper ${helper} ×, sandboxes ${sandbox} ×`
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
