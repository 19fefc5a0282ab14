import { CORE_LIMITS } from '../limits.ts'

export interface Reward {
  readonly reward: number | null
  readonly rewards: Readonly<Record<string, number>> | null
}

/** What was given as a reward, or a sentence that says why it is none. Null: nothing was given. */
export function checkReward(given: {
  readonly reward?: unknown
  readonly rewards?: unknown
}): Reward | string | null {
  if (given.reward === undefined && given.rewards === undefined) return null
  if (given.reward !== undefined && !isNumber(given.reward)) {
    return `the reward must be a finite number, not ${shown(given.reward)}`
  }
  const rewards = given.rewards === undefined ? null : checkNamed(given.rewards)
  if (typeof rewards === 'string') return rewards
  return { reward: (given.reward as number | undefined) ?? null, rewards }
}

function checkNamed(rewards: unknown): Record<string, number> | string {
  if (typeof rewards !== 'object' || rewards === null || Array.isArray(rewards)) {
    return `rewards must be an object of finite numbers, not ${shown(rewards)}`
  }
  const entries = Object.entries(rewards)
  if (entries.length === 0) return 'rewards names none'
  if (entries.length > CORE_LIMITS.rewardNames) {
    return `rewards has ${entries.length} names, at most ${CORE_LIMITS.rewardNames} are kept`
  }
  for (const [name, value] of entries) {
    if (name.length > CORE_LIMITS.rewardNameLength) return 'a name in rewards is too long'
    if (!isNumber(value)) return `rewards.${name} must be a finite number, not ${shown(value)}`
  }
  return rewards as Record<string, number>
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function shown(value: unknown): string {
  return typeof value === 'object' || typeof value === 'function'
    ? value === null
      ? 'null'
      : `an ${typeof value}`
    : String(value).slice(0, 80)
}
