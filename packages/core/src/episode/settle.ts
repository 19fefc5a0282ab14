import type { Outcome } from '@sandlot/protocol'
import { LIMITS } from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'
import { type Budget, OUTCOME_RULES } from '../outcome/rules.ts'
import type { Episode, Run } from '../run/run.ts'
import type { Ending, RetryEnding } from './ending.ts'
import type { Reward } from './reward.ts'

export interface Settled {
  readonly outcome: Outcome
  readonly cause: readonly string[]
  /** The verdict, where one was given. */
  readonly verdict?: Reward
  /** Who pays another attempt, where that is not what the outcome says. */
  readonly budget?: Budget
}

/** What follows from an outcome: another attempt while a budget pays for it, else the row's reward. */
export function settle(run: Run, episode: Episode, settled: Settled): Ending {
  const { outcome } = settled
  const cause = boundedCause(settled.cause)
  const rule = OUTCOME_RULES[outcome]
  const action = run.policy.actions[outcome] ?? 'keep'
  const budget = settled.budget ?? rule.budget
  if (run.status !== 'cancelling') {
    if (budget !== null && episode.spent[budget] < allowance(run, budget)) {
      return retry(episode, outcome, cause, budget)
    }
    if (action === 'retry' && episode.spent.policy < CORE_LIMITS.policyRetries) {
      return retry(episode, outcome, cause, 'policy')
    }
  }
  const none = { next: 'final', outcome, valid: false, reward: null, rewards: null, cause } as const
  if (action === 'drop') return { ...none, dropped: true }
  if (action === 'drop-group') return { ...none, dropped: true, dropsGroup: true }
  if (action === 'mask') return none
  if (action === 'zero') return { ...none, valid: true, reward: 0 }
  if (!rule.valid) return none
  if (rule.reward === 'verdict' && !settled.verdict) throw new Error(`${outcome} needs a verdict`)
  if (rule.reward !== 'zero' && settled.verdict) {
    const { reward, rewards } = settled.verdict
    return { next: 'final', outcome, valid: true, reward, rewards, cause }
  }
  return { ...none, valid: true, reward: 0 }
}

/** An end without a fault of the attempt's own; it is made again, and no budget pays. */
export function giveUp(cause: string, workerLost: boolean): RetryEnding {
  return {
    next: 'retry',
    outcome: null,
    cause: boundedCause([cause]),
    spends: null,
    delayMs: 0,
    ...(workerLost ? { workerLost: true } : {}),
  }
}

export function boundedCause(cause: readonly string[]): readonly string[] {
  return cause
    .slice(0, CORE_LIMITS.causes)
    .map((line) => (line.length > LIMITS.causeLength ? line.slice(0, LIMITS.causeLength) : line))
}

function allowance(run: Run, budget: Budget): number {
  return budget === 'policy' ? CORE_LIMITS.policyRetries : run.policy.retry[budget]
}

function retry(
  episode: Episode,
  outcome: Outcome,
  cause: readonly string[],
  spends: Budget,
): RetryEnding {
  const waits = spends === 'infra' || spends === 'model'
  const doubled = CORE_LIMITS.retryDelayMs * 2 ** Math.min(episode.spent[spends], 16)
  const delayMs = waits ? Math.min(doubled, CORE_LIMITS.retryDelayMsMax) : 0
  return { next: 'retry', outcome, cause, spends, delayMs }
}
