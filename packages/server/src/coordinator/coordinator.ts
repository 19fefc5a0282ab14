import type { InputBody } from '@sandlot/core'
import {
  type EpisodeView,
  type GroupsPage,
  type ResultsPage,
  type RunAttached,
  type RunReport,
  type RunView,
  SandlotError,
} from '@sandlot/protocol'
import { toSandlotError } from '../failure.ts'
import { createNameLock } from '../name-lock.ts'
import { announce } from './announce.ts'
import { checkNamed, type Named, needsOf } from './attach-run.ts'
import { attachWorker } from './attach-worker.ts'
import { type CapacityShares, openCapacityShares } from './capacity-shares.ts'
import { createRun } from './create-run.ts'
import { openDeadlines } from './deadlines.ts'
import { deleteRun } from './delete-run.ts'
import { type EpisodePage, type EpisodesQuery, getEpisode, listEpisodes } from './episodes.ts'
import { type FoundRun, findRun, onLive, viewOfFound } from './find-run.ts'
import { giveUpAll } from './give-up.ts'
import { LeavesUnderWay } from './leaves-under-way.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import { listRuns } from './list-runs.ts'
import type { LiveRun } from './live-run.ts'
import { openNodeWatch } from './node-watch.ts'
import { numbersOf } from './numbers.ts'
import { oldRuns } from './old-runs.ts'
import type {
  CoordinatorNumbers,
  CoordinatorPort,
  CreatedRun,
  ListRuns,
  ResultsQuery,
  RunPage,
  RunRequest,
  TaskRequest,
  Wait,
  WorkerRequest,
  WorkerStream,
  WorkerWire,
} from './port.ts'
import { putTasks } from './put-tasks.ts'
import { pageOfGroups, pageOfResults } from './read-results.ts'
import { beingReadBack, unknownRun } from './refusals.ts'
import { openRegistry, type Registry } from './registry.ts'
import { runFrom } from './run-from.ts'
import { allRecords, saveVersion } from './run-record.ts'
import { dropOrphans } from './run-streams.ts'
import type { CoordinatorOptions, CoordinatorServices } from './services.ts'
import { tellStoodStill } from './stood-still.ts'
import { recordKey } from './streams.ts'
import { openTaskCache } from './task-store.ts'
import { reportOf } from './views.ts'
import { isHeld } from './worker-streams.ts'

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
      leaves: new LeavesUnderWay(),
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

  /** The name of a run that starts from an image, or from a snapshot's memory, and is not over. */
  unfinishedFrom(start: string): string | undefined {
    return runFrom(this.#registry.all(), start)
  }

  listRuns(project: string, query: ListRuns): Promise<RunPage> {
    return this.#call(() => listRuns(this.#services, this.#registry, project, query))
  }

  getRun(project: string, name: string): Promise<RunView> {
    return this.#call(async () => this.#viewOf(await this.#find(project, name)))
  }

  attachRun(project: string, name: string, named: Named): Promise<RunAttached> {
    const { imageDigest } = this.#services
    return this.#call(async () => {
      const found = await this.#find(project, name)
      checkNamed(found, named, named.from && (await imageDigest(named.from)))
      return { run: this.#viewOf(found), needs: needsOf(found.record.specification) }
    })
  }

  putTasks(project: string, name: string, tasks: readonly TaskRequest[]) {
    return this.#onLive(project, name, async (live) => {
      if (live === undefined) throw new SandlotError('run_closed', 'the run is over')
      if (tasks.length === 0) return { added: 0, known: 0 }
      const put = await putTasks(this.#services, live, tasks)
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
    return this.#call(() =>
      this.#names.with(recordKey(project, name), () =>
        deleteRun(this.#services, this.#registry, project, name),
      ),
    )
  }

  /** Deletes runs that are over for longer than they are to be kept; how many. A bounded number a call. */
  async deleteOldRuns(retainMs: number | undefined): Promise<number> {
    const { engine, clock } = this.#services
    const age = { nowMs: clock.now(), retainMs }
    const old = await oldRuns(engine.kv, age, COORDINATOR_LIMITS.oldRunsAtOnce)
    for (const { project, name } of old) await this.deleteRun(project, name)
    return old.length
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

  listEpisodes(project: string, name: string, query: EpisodesQuery): Promise<EpisodePage> {
    const { log } = this.#services.engine
    return this.#call(async () => listEpisodes(log, await this.#find(project, name), query))
  }

  getEpisode(project: string, name: string, episode: string): Promise<EpisodeView> {
    const { log } = this.#services.engine
    return this.#call(async () => getEpisode(log, await this.#find(project, name), episode))
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
      const found = await this.#find(project, request.run)
      return attachWorker(found, { request, wire, draining: this.#services.stage.draining })
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

  isLeaseAlive(lease: string, sandbox: string): boolean {
    const live = this.#registry.findBySandbox(sandbox)
    return live !== undefined && live !== 'unknown' && isHeld(live.actor.run, lease, sandbox)
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

  #find(project: string, name: string): Promise<FoundRun> {
    return findRun(this.#services, this.#registry, project, name)
  }

  #viewOf(found: FoundRun): RunView {
    return viewOfFound(found, this.#services.clock.now())
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

  #onLive<T>(
    project: string,
    name: string,
    work: (live: LiveRun | undefined, found: FoundRun) => Promise<T>,
  ): Promise<T> {
    return this.#call(() => onLive(this.#services, this.#registry, { project, name }, work))
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
