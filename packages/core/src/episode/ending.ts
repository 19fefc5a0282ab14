import type { Outcome } from '@sandlot/protocol'
import type { Budget } from '../outcome/rules.ts'

/** How an attempt ended, and what follows. */
export type Ending = FinalEnding | RetryEnding

export interface FinalEnding {
  readonly next: 'final'
  readonly outcome: Outcome
  readonly valid: boolean
  readonly reward: number | null
  readonly rewards: Readonly<Record<string, number>> | null
  /** From the outside in; empty where nothing failed. */
  readonly cause: readonly string[]
  /** By the user's policy: recorded, and absent from what a trainer reads. */
  readonly dropped?: true
  /** Its whole group as well. */
  readonly dropsGroup?: true
  /** The daemon's own grader gave the verdict, so the sandbox lived until then. */
  readonly proven?: true
}

export interface RetryEnding {
  readonly next: 'retry'
  /** null: given up without a fault of its own (its worker died, no worker was left, or others had all the room). */
  readonly outcome: Outcome | null
  readonly cause: readonly string[]
  readonly spends: Budget | null
  readonly delayMs: number
  readonly workerLost?: true
}
