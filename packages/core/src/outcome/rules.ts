import type { Fault, Outcome, PolicyAction } from '@sandlot/protocol'

/** The budgets of `retry`, and the one that the policy `retry` adds. */
export const BUDGETS = ['infra', 'model', 'timeout', 'policy'] as const
export type Budget = (typeof BUDGETS)[number]

/** What one outcome means, before the user's own policy. */
export interface OutcomeRule {
  /** Whether it is a sample of the policy. Where it is not, the reward is null, never 0. */
  readonly valid: boolean
  /**
   * - `verdict`: what the grader, or else the episode, gave
   * - `verdict_or_zero`: the state that is there is graded; 0 where nobody grades or gives a verdict
   * - `zero`: 0
   * - `none`: null
   */
  readonly reward: 'verdict' | 'verdict_or_zero' | 'zero' | 'none'
  /** Which budget pays another attempt. (Grades are tried again within an attempt.) */
  readonly budget: Budget | null
  readonly fault: Fault | null
  /** What the user may ask for instead of `keep`. */
  readonly actions: readonly PolicyAction[]
}

const ANY = ['keep', 'zero', 'mask', 'retry', 'drop', 'drop-group'] as const
/** A fault that is not the policy's is never a zero. */
const NO_ZERO = ['keep', 'mask', 'retry', 'drop', 'drop-group'] as const
/** Somebody wanted it to end: it is no sample, and it is not made again. */
const ENDED = ['keep', 'mask', 'drop', 'drop-group'] as const

/** The whole meaning of the closed set: `rollouts` reads it in one screen. */
export const OUTCOME_RULES: Readonly<Record<Outcome, OutcomeRule>> = {
  graded: rule(true, 'verdict', null, null, ANY),
  agent_timeout: rule(true, 'verdict_or_zero', 'timeout', 'workload', ANY),
  limit: rule(true, 'verdict_or_zero', null, 'workload', ANY),
  sandbox_oom: rule(true, 'zero', null, 'workload', ANY),
  episode_error: rule(false, 'none', null, 'caller', ANY),
  setup_error: rule(false, 'none', null, 'workload', ANY),
  model_error: rule(false, 'none', 'model', 'caller', NO_ZERO),
  infra_create: rule(false, 'none', 'infra', 'platform', NO_ZERO),
  infra_lost: rule(false, 'none', 'infra', 'platform', NO_ZERO),
  grade_error: rule(false, 'none', null, 'caller', NO_ZERO),
  grade_timeout: rule(false, 'none', null, 'caller', NO_ZERO),
  cancelled_user: rule(false, 'none', null, null, ENDED),
  cancelled_quorum: rule(false, 'none', null, null, ENDED),
  cancelled_stale: rule(false, 'none', null, null, ENDED),
  task_invalid: rule(false, 'none', null, 'caller', ENDED),
}

function rule(
  valid: boolean,
  reward: OutcomeRule['reward'],
  budget: Budget | null,
  fault: Fault | null,
  actions: readonly PolicyAction[],
): OutcomeRule {
  return { valid, reward, budget, fault, actions }
}
