import type { Artifact, Flag, WorkerReport } from '@sandlot/protocol'
import type { Read, ReadingTotals } from '../report/reading.ts'
import type { RunPolicy } from './policy.ts'
import type { Left } from './run.ts'

/**
 * What happens to a run. Every input carries `nowMs`, the only clock that core knows; a clock that
 * goes back is taken to stand still. Inputs may come late, doubled or out of order: what no longer
 * fits is ignored (`Step.ignored` says why), so a sender may repeat until it is answered.
 *
 * `episode` is the position of the task in its run, `attempt` counts from 1, and `token` fences the
 * one thing in progress (set-up, lease or grade): the token of an effect comes back in its answers.
 */
export type Input = { readonly nowMs: number } & InputBody

export type InputBody =
  | TaskBody
  | SandboxBody
  | WorkerBody
  | LeaseBody
  /**
   * Every row and group up to and with this `seq` is durable. (`seq` counts them from 1 in the
   * order in which `append_result` and `append_group` ask for them.)
   */
  | { readonly type: 'results_recorded'; readonly through: number }
  /** The furthest reader has taken so many rows. */
  | { readonly type: 'results_read'; readonly rows: number }
  /** … or so many groups with their rows. */
  | { readonly type: 'groups_read'; readonly groups: number }
  /** What readers have done since the last of these: waited, and taken. */
  | ({ readonly type: 'reading'; readonly read: Read } & Readonly<ReadingTotals>)
  /** Time passed. */
  | { readonly type: 'tick' }
  | { readonly type: 'cancel'; readonly cause: string }
  | { readonly type: 'pause'; readonly cause: string }
  | { readonly type: 'resume' }
  /**
   * The coordinator stops in good order, and with it its sandboxes: every attempt that is not over is given up, no budget pays,
   * and the next start makes it again. Take the nodes' grants away before, or new ones are admitted at once.
   */
  | { readonly type: 'give_up'; readonly cause: string }
  /**
   * What one node grants this run: live sandboxes, and creations at once. Zero takes it away.
   * Before the first such input, admission is bound by `concurrency` alone.
   */
  | {
      readonly type: 'node_capacity'
      readonly node: string
      readonly sandboxes: number
      readonly creating: number
    }
  | { readonly type: 'policy_version_set'; readonly version: number }
  /**
   * The coordinator is back, and this is the first it says: the time since the last event was the
   * platform's, nobody's clock ran. `recordedThrough`: the last `seq` in the log of results, or 0.
   */
  | { readonly type: 'recovered'; readonly recordedThrough: number }

type TaskBody =
  | { readonly type: 'tasks_put'; readonly tasks: readonly TaskInput[] }
  /** No task comes any more: the run ends with its last episode. */
  | { readonly type: 'tasks_closed' }

type SandboxBody =
  | ({
      readonly type: 'sandbox_ready'
      readonly sandbox: string
      readonly node: string
      readonly createMs: number
    } & AttemptAddress)
  /**
   * There is no sandbox, and there will be none for this attempt. `caller` is an authoritative
   * "not found" (`task_invalid`); anything else is `infra_create`.
   */
  | ({
      readonly type: 'sandbox_failed'
      readonly fault: 'caller' | 'capacity' | 'platform'
      readonly cause: string
    } & AttemptAddress)
  /** The sandbox has ended by itself: not because core asked for it. */
  | ({
      readonly type: 'sandbox_lost'
      readonly sandbox: string
      readonly fate: SandboxFate
    } & AttemptAddress)
  /**
   * The sandbox is gone, as asked. `fate` is set where it had ended by itself before: that outranks
   * whatever its worker said.
   */
  | ({
      readonly type: 'torn_down'
      /** As in the effect that is answered: an attempt may have had two, and one is an orphan. */
      readonly sandbox: string | null
      readonly fate?: SandboxFate
      readonly flags?: readonly Flag[]
      readonly usage?: Usage
      /** What was taken out of it, where the effect asked for that. */
      readonly left?: Left
    } & AttemptAddress)
  | ({ readonly type: 'setup_done' } & Fenced)
  /**
   * `workload`: the task's own set-up failed. `late`: it did not end in its time, and `cause` is where it was. `platform`: ours failed, and
   * the attempt is made again.
   */
  | ({
      readonly type: 'setup_failed'
      readonly fault: 'workload' | 'late' | 'platform'
      readonly cause: string
    } & Fenced)

type WorkerBody =
  /**
   * A worker has come, or has come back. `held`: the tokens it still works on; a lease it had and
   * does not hold is lost. `slots`: how many leases it takes at once.
   */
  | {
      readonly type: 'worker_attached'
      readonly worker: string
      readonly slots: number
      readonly held: readonly number[]
    }
  /** Its connection is gone; its leases live on for a short while, in which it may come back. */
  | { readonly type: 'worker_detached'; readonly worker: string }
  /** A heartbeat for all its leases. `lagMs`: how late its event loop ran since the last one. */
  | { readonly type: 'worker_renewed'; readonly worker: string; readonly lagMs?: number }
  /**
   * Its leases end now. `died`: its process is known to be dead; otherwise it said good-bye, and its
   * episodes don't count it among the workers that died on them.
   */
  | {
      readonly type: 'worker_lost'
      readonly worker: string
      readonly cause: string
      readonly died: boolean
    }

type LeaseBody =
  /** The worker has begun: the clock of the phase starts. */
  | ({ readonly type: 'lease_taken' } & Fenced)
  /** Sent at the start of every model call; the agent's clock stands, `timeout.model` starts anew. */
  | ({ readonly type: 'model_started' } & Fenced)
  /** No model call of this lease is open any more. `failed`: why the last one was of no use, where that is for the run to keep. */
  | ({ readonly type: 'model_ended'; readonly failed?: string } & Fenced)
  /**
   * The program had ended by itself when it was told to stop, after `agentMs` of its phase. What it left is being taken up: its report
   * follows.
   */
  | ({ readonly type: 'agent_ended'; readonly agentMs: number } & Fenced)
  /** What the worker has come to: whoever takes its lease up after a restart finds it. Core carries it unread. */
  | ({ readonly type: 'lease_noted'; readonly note: string } & Fenced)
  /** What the worker found, for a lease of either phase. */
  | ({
      readonly type: 'reported'
      readonly report: WorkerReport
      readonly flags?: readonly Flag[]
      readonly artifacts?: readonly Artifact[]
      /** Of the phase, by the worker's clock; by core's where absent. */
      readonly agentMs?: number
      readonly modelMs?: number
      readonly lagMs?: number
      /** The platform kept the worker from it: the report is the daemon's, in the worker's place. */
      readonly fault?: 'platform'
    } & Fenced)
  /** What the daemon's own grader found. */
  | ({
      readonly type: 'graded'
      readonly result: GradeResult
      readonly flags?: readonly Flag[]
      readonly artifacts?: readonly Artifact[]
      /** In the place of the data that the agent's part left. */
      readonly dataJson?: string
    } & Fenced)

export interface AttemptAddress {
  readonly episode: number
  readonly attempt: number
}

export interface Fenced extends AttemptAddress {
  readonly token: number
}

export interface TaskInput {
  readonly key: string
  /** Digest of the task's content: same key and digest is one task, another digest an error. */
  readonly digest: string
  /** The task itself, as text or as the digest of a blob. Core carries it unread. */
  readonly taskJson: string | null
  readonly taskBlob: string | null
  readonly seed: number
  /** Of a run whose tasks name their groups; otherwise a label of the row. */
  readonly group?: string
  /** What the episode is expected to take; the longest are admitted first, but for the members of groups that have begun. */
  readonly expectedMs?: number
  readonly own?: OwnTerms
}

/** What a task has of its own, in the place of what its run has. */
export interface OwnTerms {
  /** Digest of the image that its sandboxes start from. */
  readonly from?: string
  readonly timeoutMs?: Partial<RunPolicy['timeoutMs']>
  /** All else: text, or the place of it. Core carries it unread. */
  readonly more?: string
}

/**
 * - `oom_limit`: the sandbox's own limit was hit **and** the kill is on record
 * - `oom_host`: the machine ran out
 * - `lost`: the sandbox, the node or a service died
 * - `cut_off`: its connections broke off with a service, and nothing took their place
 * - `stopped`, `lifetime`: by a person, or by the lifetime that a person set
 */
export interface SandboxFate {
  readonly cause: 'oom_limit' | 'oom_host' | 'lost' | 'cut_off' | 'stopped' | 'lifetime'
  readonly evidence: string
  readonly usage?: Usage
  /** Whatever it went over, the episode did: no grader can have run in it, or only one that runs the episode's files. */
  readonly byEpisode?: boolean
}

export type GradeResult =
  | {
      readonly kind: 'verdict'
      readonly reward?: unknown
      readonly rewards?: unknown
      /** Why, where the verdict does not speak for itself. */
      readonly cause?: string
    }
  /** `fault`: the platform's, where nobody can say what the grader would have given. Default: the grader's own. */
  | { readonly kind: 'failed'; readonly cause: string; readonly fault?: 'platform' }
  /** It did not end in its time. `said`: the last that it printed. */
  | { readonly kind: 'timed_out'; readonly said?: string }

export interface Usage {
  readonly cpuMs: number
  readonly memoryPeakBytes: number
  readonly diskBytes: number
  readonly networkBytes: number
  /** What the sandbox has cost, in whole millionths; absent where nothing has a price. */
  readonly costMicros?: number
}

export type InputOf<T extends InputBody['type']> = Extract<InputBody, { type: T }>
