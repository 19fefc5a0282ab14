/** Rewards by name, as verifiers write them and as those of several steps become one. */
export type Rewards = Readonly<Record<string, number>>

/** What a reward file says: a number, or an object of numbers. @throws Error for anything else */
export function parseRewards(text: string): Rewards {
  const value = readValue(text.trim())
  const rewards = typeof value === 'number' ? { reward: value } : value
  const entries = typeof rewards === 'object' && rewards !== null ? Object.entries(rewards) : []
  const isRight = entries.length > 0 && entries.every(([, each]) => Number.isFinite(each))
  if (!isRight || Array.isArray(rewards)) {
    throw new Error(`it holds no number and no object of numbers: ${text.slice(0, 80)}`)
  }
  return Object.fromEntries(entries) as Rewards
}

function readValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // As other languages write numbers: `.5`, `1.`, `+1`.
    return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined
  }
}

/** `mean`: of each name over all steps that were run, 0 where a step didn't give it. `final`: those of the last one. */
export function combineRewards(steps: readonly Rewards[], by: 'mean' | 'final'): Rewards {
  if (by === 'final') return steps.at(-1) ?? {}
  const names = new Set(steps.flatMap((rewards) => Object.keys(rewards)))
  const mean = (name: string) =>
    steps.reduce((sum, rewards) => sum + (rewards[name] ?? 0), 0) / steps.length
  return Object.fromEntries([...names].map((name) => [name, mean(name)]))
}

/** Whether any is below what the following steps ask for; one that isn't there is. */
export function fallsShort(rewards: Rewards, least: Rewards): boolean {
  return Object.entries(least).some(
    ([name, bound]) => (rewards[name] ?? Number.NEGATIVE_INFINITY) < bound,
  )
}
