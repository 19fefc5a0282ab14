import type { Artifact, Flag, ResultGroup } from '@sandlot/protocol'
import type { Ending, FinalEnding } from '../episode/ending.ts'
import type { Read, ReadingTotals } from '../report/reading.ts'
import type { Effect } from './effect.ts'
import type { TaskInput, Usage } from './input.ts'
import type { Left } from './run.ts'
import type { RunStatus } from './status.ts'

/**
 * What was decided: the lines of a run's log. Replaying them from `initialRun` gives the exact
 * state. An episode without trouble leaves six: `admitted`, `sandbox_bound` (with its lease),
 * `lease_taken`, `reported`, `attempt_ended`, `torn_down`; five where nobody grades.
 */
export type RunEvent = { readonly atMs: number } & EventBody

export type EventBody =
  /** The new tasks alone; they take the next positions in order. */
  | { readonly type: 'tasks_added'; readonly tasks: readonly TaskInput[] }
  | { readonly type: 'tasks_closed' }
  | ({ readonly type: 'admitted' } & Of)
  /** The attempt that is in progress takes unusually long: this one is begun beside it. */
  | ({ readonly type: 'hedged' } & Of)
  /** `token` of the set-up, or the lease at once where there is no set-up and a worker is free. */
  | ({
      readonly type: 'sandbox_bound'
      readonly sandbox: string
      readonly node: string
      readonly createMs: number
    } & Next &
      Of)
  | ({ readonly type: 'setup_done' } & Next & Of)
  | ({ readonly type: 'leased' } & Grant & Of)
  | ({ readonly type: 'lease_taken' } & Of)
  /** The worker says that it never had the lease: the same sandbox may be offered again. */
  | ({ readonly type: 'lease_returned' } & Of)
  | ({ readonly type: 'model_started' } & Of)
  | ({ readonly type: 'model_ended'; readonly failed?: string } & Of)
  /** Its worker has come so far. */
  | ({ readonly type: 'lease_noted'; readonly note: string } & Of)
  /** The agent's time is used up. Its worker is told to stop, and what it then still says is kept. */
  | ({ readonly type: 'agent_stopped'; readonly cause: string } & Of)
  /** It had ended in its time, and what it left is being taken up. */
  | ({ readonly type: 'agent_ended' } & Of)
  /** The time a phase has is longer by what the platform took of it. */
  | ({ readonly type: 'clock_extended'; readonly byMs: number } & Of)
  /**
   * The agent's part is over, and what it left is graded. `token` of the daemon's grade, or the
   * lease of a worker that is free.
   */
  | ({
      readonly type: 'reported'
      readonly outcome: 'graded' | 'agent_timeout' | 'limit'
      readonly report: ReportBody
      /** Set where the worker did not end by itself: why its lease is taken away. */
      readonly revoke?: string
    } & Next &
      Of)
  /** The grade alone is tried again. */
  | ({
      readonly type: 'grade_retried'
      readonly cause: string
      /** The worker is gone: that is counted, the try is not. */
      readonly workerLost?: true
    } & Next &
      Of)
  | ({
      readonly type: 'attempt_ended'
      readonly ending: Ending
      /** There is no sandbox to give back. */
      readonly gone?: true
      /** The one that was lost before the word of its creation came. */
      readonly sandbox?: string
      /** Why whoever works on it has to stop; absent where that one ended by itself. */
      readonly revoke?: string
      readonly report?: ReportBody
      readonly flags?: readonly Flag[]
      /** Of its grade. */
      readonly artifacts?: readonly Artifact[]
      readonly dataJson?: string
      readonly usage?: Usage
    } & Of)
  | ({ readonly type: 'release_retried' } & Of)
  /** `ending`: the sandbox's fate has overruled the attempt's end. */
  | ({
      readonly type: 'torn_down'
      readonly ending?: Ending
      readonly flags?: readonly Flag[]
      readonly usage?: Usage
      readonly left?: Left
    } & Of)
  | { readonly type: 'requeued'; readonly episode: number }
  /** Cancelled before it was ever admitted, or between two attempts. `ending`: otherwise than by a person. */
  | {
      readonly type: 'episode_cancelled'
      readonly episode: number
      readonly cause: string
      readonly ending?: FinalEnding
    }
  | { readonly type: 'worker_attached'; readonly worker: string; readonly slots: number }
  | { readonly type: 'worker_detached'; readonly worker: string }
  | { readonly type: 'worker_renewed'; readonly worker: string; readonly lagMs: number }
  /** Each of its leases has ended in an event of its own before. */
  | { readonly type: 'worker_lost'; readonly worker: string; readonly cause: string }
  /** What its dropped connection has taken from its leases up to now. */
  | { readonly type: 'worker_lagged'; readonly worker: string; readonly lagMs: number }
  /** It waited long enough for its last members: from now on what it needs suffices. */
  | { readonly type: 'group_cut'; readonly group: string }
  | ({ readonly type: 'group_ended'; readonly group: string } & Pick<
      ResultGroup,
      'state' | 'reason' | 'error'
    >)
  | {
      readonly type: 'capacity_set'
      readonly node: string
      readonly sandboxes: number
      readonly creating: number
    }
  | { readonly type: 'policy_version_set'; readonly version: number }
  | { readonly type: 'results_recorded'; readonly through: number }
  | { readonly type: 'results_read'; readonly rows: number }
  | { readonly type: 'groups_read'; readonly groups: number }
  /** What readers have done since the last of these. */
  | ({ readonly type: 'reading'; readonly read: Read } & Readonly<ReadingTotals>)
  | { readonly type: 'status_changed'; readonly status: RunStatus; readonly reason: string | null }
  | { readonly type: 'recovered'; readonly downMs: number }

/** What a worker's report leaves, beside its outcome. */
export interface ReportBody {
  readonly error?: string
  readonly dataJson?: string
  readonly dataBlob?: string
  readonly flags?: readonly Flag[]
  readonly artifacts?: readonly Artifact[]
  readonly agentMs?: number
  readonly modelMs?: number
}

export type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Where an applied event puts what has to be done; null while a log is replayed. */
export type Sink = Effect[] | null

interface Of {
  readonly episode: number
  readonly attempt: number
}

/** A lease for a worker. */
export interface Grant {
  readonly worker: string
  readonly token: number
}

/** What begins at once with the event: the daemon's own work under a token, a worker's lease, or neither. */
export interface Next {
  readonly token?: number
  readonly worker?: string
}
