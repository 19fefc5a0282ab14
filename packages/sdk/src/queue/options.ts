import type { AutoscaleInput, TaskRetryInput } from '@sandlot/protocol'
import type { Waiting } from '../connection/context.ts'

export interface QueueOptions {
  /** How many containers there are. Default: none while there is nothing to do, one for each task that waits or runs, 8 at most. */
  readonly autoscale?: AutoscaleInput
  /** Default: `{ error: 2, infra: 2, backoff: '1s' }`, then the task is a dead letter. */
  readonly retry?: TaskRetryInput
  /** How long results stay: `'30d'`. Default: as the daemon is set up (`SANDLOT_RETAIN`), else a week. */
  readonly retain?: string | number
}

export interface PutOptions {
  /** While a task of this key stands in the queue, and for 10 minutes after its put, another adds nothing. */
  readonly key?: string
  /** Higher is taken first. Default 0. */
  readonly priority?: number
  /** Not begun before this time has passed: `'30s'` or milliseconds. */
  readonly delay?: string | number
}

/** As for one task; what is no function holds for all of them. Inputs are counted from 0. */
export interface PutManyOptions<Input> extends Waiting {
  readonly key?: (input: Input, index: number) => string
  readonly priority?: number | ((input: Input, index: number) => number)
  readonly delay?: string | number | ((input: Input, index: number) => string | number)
}

export interface QueueResultsOptions extends Waiting {
  /** Cursor of the last row that was handled; default: from the first that is kept. */
  readonly from?: string
  /** `empty`: end when nothing waits and nothing runs. Default: wait for more, until the loop is left. */
  readonly until?: 'empty'
}

/** How a task ended. Saved with its cursor, reading goes on after it. */
export type QueueRow<Output> = {
  readonly cursor: string
  readonly task: string
  readonly key: string | null
  readonly attempts: number
  readonly startedAtMs: number
  readonly endedAtMs: number
} & ({ readonly ok: true; readonly value: Output } | { readonly ok: false; readonly error: Error })

/** A task that failed after its last retry. */
export interface DeadTask<Input> {
  readonly task: string
  readonly key: string | null
  readonly input: Input
  readonly error: Error
  readonly attempts: number
  readonly diedAtMs: number
}
