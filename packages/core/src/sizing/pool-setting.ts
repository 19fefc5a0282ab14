import type { GroupRule, HedgeRule } from '@sandlot/protocol'
import type { Latency } from './latency.ts'

/** A pool, what runs in it, and who takes the results: everything that a seed does not decide. */
export interface PoolSetting {
  readonly seed: number
  /** Tasks; with groups each is one group. */
  readonly tasks: number
  readonly concurrency: number
  /** Sandboxes that the machine has room for, and starts at once. null: as many as are asked for. */
  readonly capacity: number | null
  readonly creating: number | null
  readonly group: GroupRule | null
  readonly hedge: HedgeRule | null
  readonly ahead: number | null
  /** Whether the run is told beforehand how long each episode takes: the longest begin first. */
  readonly expected: boolean
  readonly create: Latency
  /** The agent's own time, without the model's. */
  readonly agent: Latency
  readonly model: ModelSetting | null
  readonly grade: Latency | null
  /** Share of the attempts whose sandbox is lost half-way. */
  readonly losses: number
  /** How much more often a slow episode is wrong: one that takes `f` times the median is right with 1 / (1 + f ** hardness). */
  readonly hardness: number
  /** null: results are read as they come. */
  readonly trainer: TrainerSetting | null
}

export interface ModelSetting {
  readonly latency: Latency
  /** Of each episode. */
  readonly calls: number
  /** That it answers at once; others wait in line. null: all. */
  readonly slots: number | null
  /** Share of the calls that fail. */
  readonly failures: number
}

export interface TrainerSetting {
  /** Groups of a batch; results, where there are no groups. */
  readonly batch: number
  readonly step: Latency
}

export const POOL_DEFAULTS = {
  seed: 1,
  capacity: null,
  creating: null,
  group: null,
  hedge: null,
  ahead: null,
  expected: false,
  create: { kind: 'fixed', ms: 20 },
  model: null,
  grade: null,
  losses: 0,
  hardness: 0.5,
  trainer: null,
} as const satisfies Partial<PoolSetting>
