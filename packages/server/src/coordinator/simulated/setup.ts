import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, openSqliteEngine } from '@sandlot/engine'
import type { ResultRow, RunCreate, RunView, TaskPut } from '@sandlot/protocol'
import type { ContainerSource } from '../../functions/container.ts'
import { Coordinator } from '../coordinator.ts'
import type { KeepRequest, SandboxKeeper } from '../leaving.ts'
import { createManualClock, type ManualClock } from './clock.ts'
import { SimulatedNode, type SimulatedNodeOptions } from './node.ts'
import { countPending } from './pending.ts'
import { until } from './settle.ts'
import type { SimulatedWorker } from './worker.ts'

/** A coordinator on a real engine in a fresh directory, with a node and a clock that the test drives. */
export interface Simulation extends AsyncDisposable {
  readonly engine: Engine
  readonly clock: ManualClock
  readonly node: SimulatedNode
  readonly coordinator: Coordinator
  /** Nothing is being decided, and nothing written or read. */
  readonly isIdle: boolean
  /** What the daemon's log would say. */
  readonly warnings: string[]
  /** Sandboxes whose files are kept. */
  readonly kept: readonly KeepRequest[]
  /** Stops the coordinator and starts another one on the same engine and node. */
  restart(): Promise<Coordinator>
  view(run: string): Promise<RunView>
  /** Waits until the run is finished; gives its rows by key. */
  results(run: string): Promise<ResultRow[]>
}

export async function simulate(
  options: SimulatedNodeOptions & {
    onKeep?(request: KeepRequest): void | Promise<void>
    /** Where functions run. Default: nowhere. */
    readonly containers?: ContainerSource
  } = {},
): Promise<Simulation> {
  const { containers } = options
  const directory = await mkdtemp(join(tmpdir(), 'coordinator-'))
  const opened = await openSqliteEngine({ directory })
  const pending = countPending(opened)
  const { engine } = pending
  const clock = createManualClock()
  const node = new SimulatedNode(options)
  const warnings: string[] = []
  const kept: KeepRequest[] = []
  const keeper: SandboxKeeper = {
    async keep(request) {
      await options.onKeep?.(request)
      if (!kept.some(({ snapshot }) => snapshot === request.snapshot)) kept.push(request)
    },
    async forget(project, isOfRun) {
      const left = kept.filter((each) => each.project !== project || !isOfRun(each.snapshot))
      kept.splice(0, kept.length, ...left)
    },
  }
  let coordinator = await start()

  async function start(): Promise<Coordinator> {
    const started = new Coordinator({
      ...{ engine, node, clock, keeper },
      ...(containers
        ? { functions: { source: containers, url: 'http://in', token: tokenOf } }
        : {}),
      imageDigest: async (id) => (id === 'im_none' ? undefined : `sha256:${id}`),
      warn: (message, error) => warnings.push(`${message}: ${String(error)}`),
    })
    await started.recover()
    return started
  }

  return {
    ...{ engine, clock, node, warnings, kept },
    get coordinator() {
      return coordinator
    },
    get isIdle() {
      const { inputsWaiting, batchesInFlight } = coordinator.numbers()
      return inputsWaiting + batchesInFlight + pending.calls === 0
    },
    async restart() {
      await coordinator[Symbol.asyncDispose]()
      coordinator = await start()
      return coordinator
    },
    view: (run) => coordinator.getRun('default', run),
    async results(run) {
      await until('the run is over', async () => {
        return (await coordinator.getRun('default', run)).state === 'finished'
      })
      const { rows } = await coordinator.getResults('default', run, { limit: 1_000 })
      return rows.sort((a, b) => (a.key < b.key ? -1 : 1))
    },
    async [Symbol.asyncDispose]() {
      await coordinator[Symbol.asyncDispose]()
      await opened[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
}

function tokenOf({ sandbox, lease }: { readonly sandbox: string; readonly lease: string }): string {
  return `${sandbox}/${lease}`
}

export function runCreate(name: string, more: Partial<RunCreate> = {}): RunCreate {
  return { name, kind: 'worker', from: 'im_a', concurrency: 4, ...more }
}

/** Tasks `t0`, `t1`, … */
export function someTasks(count: number, from = 0): TaskPut[] {
  return Array.from({ length: count }, (_, i) => ({
    key: `t${from + i}`,
    json: `{"n":${from + i}}`,
  }))
}

/**
 * Lets time go on until the run is over, in steps that are taken only when nothing is under way: however slow the machine is, what
 * the coordinator waits for comes before what it would give up for. Meanwhile the worker, where there is one, is heard.
 */
export async function overTime(
  simulation: Simulation,
  worker?: SimulatedWorker,
  stepMs = 100,
): Promise<ResultRow[]> {
  await until('the run is over', async () => {
    if (simulation.isIdle) {
      simulation.clock.advance(stepMs)
      worker?.renew()
    }
    return (await simulation.view('a')).state === 'finished'
  })
  return await simulation.results('a')
}

/** A run with its tasks, closed. */
export async function startRun(
  { coordinator }: Simulation,
  run: RunCreate,
  tasks: readonly TaskPut[],
): Promise<void> {
  await coordinator.createRun('default', run)
  await coordinator.putTasks('default', run.name, tasks)
  await coordinator.closeRun('default', run.name)
}
