import type { InputBody } from '@sandlot/core'
import type { Clock, Engine } from '@sandlot/engine'
import {
  type GroupsPage,
  type ResultsPage,
  type RunReport,
  type RunView,
  SandlotError,
  type TaskPut,
} from '@sandlot/protocol'
import { toSandlotError } from '../failure.ts'
import { createNameLock } from '../name-lock.ts'
import type { NodePort } from '../node/port.ts'
import { announce } from './announce.ts'
import { type CapacityShares, openCapacityShares } from './capacity-shares.ts'
import { createRun } from './create-run.ts'
import { openDeadlines } from './deadlines.ts'
import { giveUpAll } from './give-up.ts'
import { listRuns } from './list-runs.ts'
import type { LiveRun } from './live-run.ts'
import { openNodeWatch } from './node-watch.ts'
import { numbersOf } from './numbers.ts'
import type {
  CoordinatorNumbers,
  CoordinatorPort,
  CreatedRun,
  ListRuns,
  ResultsQuery,
  RunPage,
  RunRequest,
  Wait,
  WorkerRequest,
  WorkerStream,
  WorkerWire,
} from './port.ts'
import { putTasks } from './put-tasks.ts'
import { type FoundRun, pageOfGroups, pageOfResults } from './read-results.ts'
import { beingReadBack, unknownRun } from './refusals.ts'
import { openRegistry, type Registry } from './registry.ts'
import { RunStopped } from './run-actor.ts'
import { allRecords, findRecord, saveVersion } from './run-record.ts'
import { dropOrphans, dropRun } from './run-streams.ts'
import type { CoordinatorServices } from './services.ts'
import { tellStoodStill } from './stood-still.ts'
import { recordKey } from './streams.ts'
import { openTaskCache } from './task-store.ts'
import { reportOf, viewOf } from './views.ts'
import { OVER } from './worker-streams.ts'

export interface CoordinatorOptions {
  readonly engine: Engine
  readonly node: NodePort
  readonly clock: Clock
  /** Digest of an image; undefined where there is none of this id. */
  imageDigest(image: string): Promise<string | undefined>
  /** For the daemon's log: something of ours failed, and is tried again. */
  warn(message: string, error: unknown): void
}

/** Decides for all runs of this daemon. */
export class Coordinator implements CoordinatorPort {
  readonly #services: CoordinatorServices
  readonly #registry: Registry
  readonly #shares: CapacityShares
  readonly #stopping = new AbortController()
  readonly #names = createNameLock()
  #recovered = false

  constructor(options: CoordinatorOptions) {
    this.#services = {
      ...options,
      signal: this.#stopping.signal,
      counters: { done: 0 },
      stage: { draining: false },
      deadlines: openDeadlines(options.clock),
      taskCache: openTaskCache(),
    }
    this.#registry = openRegistry(this.#services)
    this.#shares = openCapacityShares(this.#services, this.#registry)
  }

  async recover(): Promise<void> {
    const { engine } = this.#services
    await dropOrphans(engine)
    for await (const stored of allRecords(engine.kv)) {
      if (stored.record.finished !== null) continue
      announce(this.#services, await this.#registry.open(stored))
    }
    await openNodeWatch(this.#services, this.#registry).start()
    await this.#shares.start()
    this.#recovered = true
  }

  createRun(project: string, run: RunRequest): Promise<CreatedRun> {
    return this.#call(() => {
      if (this.#services.stage.draining)
        throw new SandlotError('draining', 'the daemon is stopping')
      return this.#names.with(recordKey(project, run.name), async () => {
        const created = await createRun(this.#services, this.#registry, project, run)
        if (!created.attached) await this.#shares.changed()
        return created
      })
    })
  }

  /** The name of a run that starts episodes from an image, or from a snapshot's memory, and is not over. */
  unfinishedFrom(start: string): string | undefined {
    for (const { record } of this.#registry.all()) {
      const { image, memory } = record.specification
      if (image === start || memory?.checkpoint === start) return record.name
    }
    return undefined
  }

  listRuns(project: string, query: ListRuns): Promise<RunPage> {
    return this.#call(() => listRuns(this.#services, this.#registry, project, query))
  }

  getRun(project: string, name: string): Promise<RunView> {
    return this.#call(async () => this.#viewOf(await this.#find(project, name)))
  }

  putTasks(project: string, name: string, tasks: readonly TaskPut[]) {
    return this.#onLive(project, name, async (live) => {
      if (live === undefined) throw new SandlotError('run_closed', 'the run is over')
      if (tasks.length === 0) return { added: 0, known: 0 }
      const put = await putTasks(live, tasks)
      announce(this.#services, live)
      return put
    })
  }

  closeRun(project: string, name: string): Promise<RunView> {
    return this.#tell(project, name, { type: 'tasks_closed' })
  }

  cancelRun(project: string, name: string): Promise<RunView> {
    return this.#tell(project, name, { type: 'cancel', cause: 'cancelled by a person' })
  }

  pauseRun(project: string, name: string): Promise<RunView> {
    return this.#tell(project, name, { type: 'pause', cause: 'paused by a person' })
  }

  resumeRun(project: string, name: string): Promise<RunView> {
    return this.#tell(project, name, { type: 'resume' })
  }

  setPolicyVersion(project: string, name: string, version: number): Promise<RunView> {
    const { kv } = this.#services.engine
    return this.#onLive(project, name, async (live, found) => {
      if (live) return await this.#tell(project, name, { type: 'policy_version_set', version })
      const view = await saveVersion(kv, found.record, version)
      if (view === undefined) throw unknownRun(name)
      return view
    })
  }

  deleteRun(project: string, name: string): Promise<void> {
    const { engine } = this.#services
    return this.#call(() =>
      this.#names.with(recordKey(project, name), async () => {
        await this.#registry.settled(project, name)
        const stored = await findRecord(engine.kv, project, name)
        if (stored === undefined) throw unknownRun(name)
        if (stored.record.finished === null) {
          throw new SandlotError('run_exists', `the run ${name} is not finished`, {
            hint: 'Cancel it first, and wait until it is finished.',
          })
        }
        await engine.kv.delete(recordKey(project, name), { expect: stored.revision })
        await dropRun(engine, stored.record)
      }),
    )
  }

  getResults(
    project: string,
    name: string,
    query: ResultsQuery,
    wait: Wait = {},
  ): Promise<ResultsPage> {
    const find = () => this.#find(project, name)
    return this.#call(() => pageOfResults(this.#services, find, query, wait))
  }

  getGroups(
    project: string,
    name: string,
    query: ResultsQuery,
    wait: Wait = {},
  ): Promise<GroupsPage> {
    const find = () => this.#find(project, name)
    return this.#call(() => pageOfGroups(this.#services, find, query, wait))
  }

  getReport(project: string, name: string): Promise<RunReport> {
    return this.#call(async () => {
      const { record, live } = await this.#find(project, name)
      if (live) return reportOf(live, this.#services.clock.now())
      if (record.finished === null) throw beingReadBack(name)
      return record.finished.report
    })
  }

  attachWorker(project: string, request: WorkerRequest, wire: WorkerWire): Promise<WorkerStream> {
    return this.#call(async () => {
      const { live } = await this.#find(project, request.run)
      if (live === undefined) return OVER
      const stream = live.workers.attach(request, wire)
      if (this.#services.stage.draining) wire.send({ kind: 'draining' })
      return stream
    })
  }

  drain(): void {
    this.#services.stage.draining = true
    this.#shares.close()
    for (const { workers } of this.#registry.all()) workers.tellDraining()
  }

  async giveUp(): Promise<void> {
    await giveUpAll(this.#services, this.#registry)
  }

  stoodStill(forMs: number): void {
    for (const live of this.#registry.all()) tellStoodStill(live, forMs)
  }

  numbers(): CoordinatorNumbers {
    return numbersOf(this.#registry, this.#services.counters.done)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new SandlotError('draining', 'the daemon is stopping'))
    this.#shares.close()
    await this.#registry.close()
    this.#services.deadlines.close()
  }

  /** The run in the coordinator's hands, or the record of one that is over. */
  async #find(project: string, name: string): Promise<FoundRun> {
    const live = this.#registry.find(project, name)
    if (live) return { record: live.record, live }
    const stored = await findRecord(this.#services.engine.kv, project, name)
    if (stored === undefined) throw unknownRun(name)
    if (stored.record.finished === null) throw beingReadBack(name)
    return { record: stored.record, live: undefined }
  }

  #viewOf({ record, live }: FoundRun): RunView {
    if (live) return viewOf(live, this.#services.clock.now())
    if (record.finished === null) throw beingReadBack(record.name)
    return record.finished.view
  }

  /** Resolves once what the input led to is durable. For a run that is over there is nothing left to do. */
  #tell(project: string, name: string, input: InputBody): Promise<RunView> {
    return this.#onLive(project, name, async (live, found) => {
      if (live) {
        await new Promise<void>((resolve, reject) => {
          live.actor.post(input, (answer) => (answer.ok ? resolve() : reject(answer.error)))
        })
      }
      return this.#viewOf(found)
    })
  }

  /** Looks the run up again where it was let go of meanwhile: it is over then, or was read back. */
  #onLive<T>(
    project: string,
    name: string,
    work: (live: LiveRun | undefined, found: FoundRun) => Promise<T>,
  ): Promise<T> {
    return this.#call(async () => {
      for (;;) {
        const found = await this.#find(project, name)
        try {
          return await work(found.live, found)
        } catch (error) {
          if (!(error instanceof RunStopped)) throw error
          await this.#registry.settled(project, name)
          if (this.#registry.find(project, name) === found.live) throw beingReadBack(name)
        }
      }
    })
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#recovered || this.#stopping.signal.aborted) {
      const doing = this.#recovered ? 'stopping' : 'starting'
      throw new SandlotError('draining', `the daemon is ${doing}`)
    }
    try {
      return await work()
    } catch (error) {
      throw toSandlotError(error)
    }
  }
}
