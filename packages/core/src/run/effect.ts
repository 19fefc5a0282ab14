import type { ResultGroup, ResultRow } from '@sandlot/protocol'
import type { Leaves } from './run.ts'
import type { RunStatus } from './status.ts'

/**
 * What the coordinator does once the events of the same step are durable. After a restart an effect
 * may be asked for again: `episode`/`attempt` (and `token`, where there is one) is the key by which
 * whoever acts recognises what was already begun, and goes on with it instead of beginning twice.
 */
export type Effect =
  /** Answered by `sandbox_ready` or `sandbox_failed`. */
  | ({ readonly type: 'acquire_sandbox'; readonly dueMs: number } & AttemptOf)
  /** Answered by `setup_done` or `setup_failed`. */
  | ({ readonly type: 'run_setup'; readonly dueMs: number } & InSandbox)
  | LeaseOffer
  /** The daemon grades by itself. Answered by `graded`. */
  | ({ readonly type: 'start_grade'; readonly dueMs: number } & StoredData & InSandbox)
  /** The daemon's grade is over time, or not wanted any more: stop what it started. */
  | { readonly type: 'cancel_grade'; episode: number; attempt: number; token: number }
  /** Abort the phase's signal in its worker; whatever it still says is refused by its token. */
  | {
      readonly type: 'cancel_worker'
      readonly worker: string
      readonly episode: number
      readonly attempt: number
      readonly token: number
      readonly cause: string
    }
  /** The worker is lost: close its connection, if there is one. It has to attach anew. */
  | { readonly type: 'drop_worker'; readonly worker: string; readonly cause: string }
  /**
   * End the sandbox, or the creation that is under way (`sandbox` is null). Answered by `torn_down`,
   * also where there is nothing (any more).
   */
  | {
      readonly type: 'release_sandbox'
      readonly episode: number
      readonly attempt: number
      readonly sandbox: string | null
      readonly node: string | null
      /** What is taken out of it before; the answer says what came of that. */
      readonly leaves?: Leaves
    }
  /**
   * The commit point: append, unless the log of results has this episode. The log gives the cursor.
   * Answered by `results_recorded`.
   */
  | { readonly type: 'append_result'; readonly seq: number; readonly row: UnrecordedRow }
  /** The same for a group that has ended, once the rows before it are durable. */
  | { readonly type: 'append_group'; readonly seq: number; readonly group: UnrecordedGroup }
  | { readonly type: 'status_changed'; readonly status: RunStatus; readonly reason: string | null }

/**
 * Give the worker its lease: on the connection it is attached by, and only while `isCurrent` holds.
 * Answered by `lease_taken`, then `reported`. It may come again after a restart, even after its
 * report: a worker ignores a token that it has seen.
 */
export interface LeaseOffer extends InSandbox, StoredData {
  readonly type: 'offer_lease'
  readonly phase: 'agent' | 'grade'
  readonly worker: string
  readonly group: string
  readonly member: number
  readonly seed: number
  readonly policyVersion: number
  /** What the worker has, from taking it, by the clock of the phase; core enforces it as well. */
  readonly timeoutMs: number
  readonly modelTimeoutMs: number
}

export type UnrecordedRow = Omit<ResultRow, 'cursor'>

/** Instead of its rows it names the episodes whose they are. */
export interface UnrecordedGroup extends Omit<ResultGroup, 'cursor' | 'stale' | 'rows'> {
  readonly episodes: readonly string[]
}

interface AttemptOf {
  readonly episode: number
  readonly attempt: number
  readonly key: string
  readonly taskJson: string | null
  readonly taskBlob: string | null
  /** `more` of what the task has of its own. */
  readonly own: string | null
}

interface InSandbox extends AttemptOf {
  readonly token: number
  readonly sandbox: string
  readonly node: string
}

/** What the episode returned as `data`; null before the grade. */
interface StoredData {
  readonly dataJson: string | null
  readonly dataBlob: string | null
}
