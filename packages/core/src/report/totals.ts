import type { Flag, Phase } from '@sandlot/protocol'
import type { OutcomeCounts } from '../run/run.ts'
import type { Sketch } from './sketch.ts'

/** What is left of the episodes that ended. */
export interface Totals {
  tasks: number
  ended: number
  attempts: number
  retries: number
  /** Ended, by outcome. */
  readonly outcomes: OutcomeCounts
  readonly flags: Partial<Record<Flag, number>>
  rewardSum: number
  rewardCount: number
  /** Of the attempts that counted. */
  readonly phases: Record<Phase, Sketch>
}
