import { type Flag, type GroupReason, type HedgePhase, PHASES, type Phase } from '@sandlot/protocol'
import type { FinalEnding } from '../episode/ending.ts'
import type { OutcomeCounts, PhaseClock } from '../run/run.ts'
import type { CauseCount } from './causes.ts'
import type { PassedTime } from './passing.ts'
import { noReading, type Read, type ReadingTotals } from './reading.ts'
import { addToSketch, emptySketch, type Sketch } from './sketch.ts'

/** What is left of the episodes that ended. */
export interface Totals {
  tasks: number
  ended: number
  /** Admitted, and those among them that were not their episode's first. */
  attempts: number
  retries: number
  /** Ended, by outcome. */
  readonly outcomes: OutcomeCounts
  readonly flags: Partial<Record<Flag, number>>
  rewardSum: number
  rewardCount: number
  /** Why episodes ended as they did, and why they were tried again. */
  readonly causes: CauseCount[]
  /** Of the attempts that counted. */
  readonly phases: Record<Phase, Sketch>
  readonly groups: GroupTotals
  readonly hedges: HedgeTotals
  readonly passed: PassedTime
  /** Of all sandboxes that have ended, in whole millionths; null: nothing had a price. */
  cost: { micros: number; retriesMicros: number } | null
  readonly reading: Readonly<Record<Read, ReadingTotals>>
}

/** What is left of second attempts. */
export interface HedgeTotals {
  started: number
  /** Those that the episode went on with. */
  won: number
  /** How long the parts of attempts took, and for how long those had gone on that were stopped. Kept where a quantile is asked for. */
  readonly took: Readonly<Record<HedgePhase, { readonly ended: Sketch; readonly stopped: Sketch }>>
}

/** What is left of the groups that ended, and of their members. */
export interface GroupTotals {
  /** What ended them. */
  readonly reasons: Partial<Record<GroupReason, number>>
  /** Members of the complete ones, and what they took. */
  members: number
  memberMs: number
  /** Those among them that were not waited for. */
  stragglers: number
  stragglerMs: number
  /** What members took that ended with a valid result, and all others up to their end. */
  readonly ended: Sketch
  readonly stopped: Sketch
}

export function emptyTotals(): Totals {
  return {
    tasks: 0,
    ended: 0,
    attempts: 0,
    retries: 0,
    outcomes: {},
    flags: {},
    rewardSum: 0,
    rewardCount: 0,
    causes: [],
    phases: Object.fromEntries(PHASES.map((phase) => [phase, emptySketch()])) as Record<
      Phase,
      Sketch
    >,
    groups: {
      reasons: {},
      members: 0,
      memberMs: 0,
      stragglers: 0,
      stragglerMs: 0,
      ended: emptySketch(),
      stopped: emptySketch(),
    },
    hedges: {
      started: 0,
      won: 0,
      took: { create: emptyTook(), setup: emptyTook(), agent: emptyTook() },
    },
    passed: { limitedMs: {}, slotMs: 0 },
    cost: null,
    reading: noReading(),
  }
}

function emptyTook() {
  return { ended: emptySketch(), stopped: emptySketch() }
}

/** `clock` is null for an episode that never had an attempt. */
export function countEnding(
  totals: Totals,
  ending: FinalEnding,
  flags: readonly Flag[],
  clock: PhaseClock | null,
): void {
  totals.ended++
  totals.outcomes[ending.outcome] = (totals.outcomes[ending.outcome] ?? 0) + 1
  for (const flag of flags) totals.flags[flag] = (totals.flags[flag] ?? 0) + 1
  if (ending.reward !== null) {
    totals.rewardSum += ending.reward
    totals.rewardCount++
  }
  if (!clock) return
  const { phases } = totals
  addToSketch(phases.queued, clock.queuedMs)
  addToSketch(phases.create, clock.createMs)
  addToSketch(phases.setup, clock.setupMs)
  addToSketch(phases.agent, clock.agentMs)
  addToSketch(phases.model, clock.modelMs)
  addToSketch(phases.grade, clock.gradeMs)
  addToSketch(phases.teardown, clock.teardownMs)
}
