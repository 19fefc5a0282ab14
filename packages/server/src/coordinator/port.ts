/**
 * What the HTTP API and the WebSocket ask of the coordinator.
 *
 * - Arguments are the protocol's types, already parsed. Every refusal is a `SandlotError` of its catalogue.
 * - A call that changes something resolves once the change is durable (it survives SIGKILL of any process).
 * - Runs are addressed by project and name. Names of other projects do not exist for the caller: `run_unknown`.
 * - Cursors are opaque text.
 */
import type {
  EpisodeView,
  GroupsPage,
  ResultsPage,
  RunAttached,
  RunCreate,
  RunReport,
  RunState,
  RunView,
  TaskPut,
  WorkerEventFromClient,
  WorkerEventFromServer,
} from '@sandlot/protocol'
import type { AcquireRequest } from '../node/port.ts'
import type { StartPoint } from '../start-points.ts'
import type { Named } from './attach-run.ts'
import type { EpisodePage, EpisodesQuery } from './episodes.ts'

/** Saved memory that a start begins with. */
export type RunMemory = Pick<AcquireRequest, 'checkpoint' | 'coldInstead' | 'onRestore'>

/** A run whose `from` is an image already, and the memory that its sandboxes start from, taken over that image. */
export interface RunRequest extends RunCreate {
  /** The image that the containers of its function start from; null: the daemon's own. */
  readonly functionImage?: string | null
  readonly memory?: RunMemory
}

/** A task whose `from`, where it has one, is looked up already. Until the call is over, what it stands for must stay. */
export interface TaskRequest extends Omit<TaskPut, 'from'> {
  readonly start?: StartPoint
}

export interface CoordinatorPort extends AsyncDisposable {
  /**
   * Reads back every unfinished run and goes on with it. Called once, before any other call, when the node has recovered and
   * serves. Until it resolves every other call is refused with `draining`.
   */
  recover(wait?: Wait): Promise<void>

  /**
   * Starts a run, or attaches to the unfinished one of the same name and digest. A finished one is `run_exists` unless
   * `ifExists` says what to do; another digest is `run_differs`, with `details.fields`: `{ [option]: { existing, requested } }`.
   */
  createRun(project: string, run: RunRequest, wait?: Wait): Promise<CreatedRun>
  /** In order of name. `next` is the cursor of the next page, null on the last. */
  listRuns(project: string, query: ListRuns, wait?: Wait): Promise<RunPage>
  getRun(project: string, name: string, wait?: Wait): Promise<RunView>
  /** Refused with `run_differs` where the run is not what is named. */
  attachRun(project: string, name: string, named: Named, wait?: Wait): Promise<RunAttached>
  /**
   * Adds tasks, at most `LIMITS.tasksPerRequest`; `known` are those that were there with the same content.
   * Nothing is added when one of them is refused: `task_conflict`, `run_closed`, `blob_unknown`, `image_unknown`. An empty list is
   * fine.
   */
  putTasks(
    project: string,
    name: string,
    tasks: readonly TaskRequest[],
    wait?: Wait,
  ): Promise<{ added: number; known: number }>
  /** Idempotent, as the next three are. */
  closeRun(project: string, name: string, wait?: Wait): Promise<RunView>
  /** Resolves once the cancellation is durable; the episodes end soon after it. */
  cancelRun(project: string, name: string, wait?: Wait): Promise<RunView>
  pauseRun(project: string, name: string, wait?: Wait): Promise<RunView>
  resumeRun(project: string, name: string, wait?: Wait): Promise<RunView>
  /** The version of the policy with which attempts begin from now on; ends those that lag too far. */
  setPolicyVersion(project: string, name: string, version: number, wait?: Wait): Promise<RunView>
  /** Removes a finished run with its results. An unfinished one is refused with `run_exists`. */
  deleteRun(project: string, name: string, wait?: Wait): Promise<void>

  /** Results in the order of their completion. With `waitMs` an empty page waits for the first row or the run's end. */
  getResults(project: string, name: string, query: ResultsQuery, wait?: Wait): Promise<ResultsPage>
  /** The same of groups, with the rows that count in them. Refused with `invalid_request` for a run without groups. */
  getGroups(project: string, name: string, query: ResultsQuery, wait?: Wait): Promise<GroupsPage>
  /** A page of its episodes; `next` is the cursor of the next one, null on the last. */
  listEpisodes(
    project: string,
    name: string,
    query: EpisodesQuery,
    wait?: Wait,
  ): Promise<EpisodePage>
  /** By key or id. Refused with `not_found`. */
  getEpisode(project: string, name: string, episode: string, wait?: Wait): Promise<EpisodeView>
  getReport(project: string, name: string, wait?: Wait): Promise<RunReport>

  /**
   * A worker's stream begins. Refused with `run_unknown`; for a run that is over the stream's `done` resolves at once.
   * A later stream of the same worker id takes the place of the earlier one, whose `done` resolves.
   */
  attachWorker(project: string, request: WorkerRequest, wire: WorkerWire): Promise<WorkerStream>

  /** Whether a lease lives, and is one of this sandbox. Answered from memory. */
  isLeaseAlive(lease: string, sandbox: string): boolean

  /** This process stood still for so long. That time is the platform's: no agent is charged for it, no lease runs out by it. */
  stoodStill(forMs: number): void

  /** Admits nothing more and refuses new runs: the daemon is about to stop. What is admitted goes on. */
  drain(): void
  /**
   * The sandboxes are about to be ended with the daemon: every attempt that still runs is given up, at nobody's cost, and made
   * again by the next start. Resolves when that is durable and the releases are asked for, or after a while where it can't be.
   */
  giveUp(): Promise<void>
  /** For metrics and `/healthz`. Cheap. */
  numbers(): CoordinatorNumbers
  /** Stops deciding and waits for what is being written. Ends no episode and no sandbox: they are found again by `recover`. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface Wait {
  readonly signal?: AbortSignal
}

export interface CreatedRun {
  readonly run: RunView
  readonly attached: boolean
}

export interface ListRuns {
  /** At most `LIMITS.itemsPerPage`; default 100. */
  readonly limit?: number
  readonly after?: string
  readonly state?: RunState
}

export interface RunPage {
  readonly items: RunView[]
  readonly next: string | null
}

export interface ResultsQuery {
  /** Cursor of the last row, or group, that was read. Default: from the first. */
  readonly after?: string
  /** At most `LIMITS.rowsPerPage`, default 100; of groups `LIMITS.groupsPerPage`, default 10. A page also ends at about 4 MiB. */
  readonly limit?: number
  /** At most `LIMITS.waitMs`; default 0. */
  readonly waitMs?: number
}

/** The `worker` request of the WebSocket, without its `op`. */
export interface WorkerRequest {
  /** Name of the run. */
  readonly run: string
  readonly worker: string
  readonly slots: number
  readonly held: readonly { readonly lease: string; readonly token: number }[]
}

/** The worker's end of the stream, as the coordinator sees it. */
export interface WorkerWire {
  /** Queues the event for the worker. Never throws; after the connection's end it does nothing. */
  send(event: WorkerEventFromServer): void
}

/** What a worker says. One in this process measures nothing: core's clock tells what its phases took. */
export type WorkerEvent =
  | Exclude<WorkerEventFromClient, { kind: 'report' }>
  | (Omit<ReportEvent, Measured> & Partial<Pick<ReportEvent, Measured>>)

type ReportEvent = Extract<WorkerEventFromClient, { kind: 'report' }>
type Measured = 'agentMs' | 'modelMs' | 'lagMs'

/** The coordinator's end of the stream. */
export interface WorkerStream {
  /** What the worker sent. Events of one stream are handled in order. Never throws. */
  receive(event: WorkerEvent): void
  /** The connection is gone. The leases stay the worker's for as long as it may take to come back. Idempotent. */
  lost(): void
  /** The worker said good-bye (it cancelled its request): its leases end now and go to others. Idempotent. */
  left(): void
  /** The worker died under what it worked on, and why. Each of its leases is one of the three deaths that an episode may cause. Idempotent. */
  died(cause: string): void
  /**
   * Resolves when the stream should be ended with a result: the run is over, or a later stream took its place.
   * Rejects with `draining` when the coordinator lets go of the run: the worker should come back with what it holds.
   */
  readonly done: Promise<void>
}

export interface CoordinatorNumbers {
  readonly runs: Readonly<Record<RunState, number>>
  /** Of all unfinished runs. */
  readonly episodes: {
    readonly queued: number
    readonly running: number
    readonly grading: number
    /** Since the daemon's start. */
    readonly done: number
  }
  readonly workers: number
  readonly leases: number
  /** Inputs that wait to be decided on, and batches that wait to be durable. */
  readonly inputsWaiting: number
  readonly batchesInFlight: number
}
