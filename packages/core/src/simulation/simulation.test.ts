import { GROUP_REASONS } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { simulate } from './index.ts'

const FIRST = Number(process.env.SANDLOT_SEED ?? 1)
const ENDLESS = process.env.SANDLOT_SEEDS === 'endless'
const COUNT = ENDLESS
  ? Number.POSITIVE_INFINITY
  : Number(process.env.SANDLOT_SEEDS ?? (process.env.SANDLOT_SEED ? 1 : 2_000))
const TIMEOUT_MS = ENDLESS ? 0 : 600_000

test(`${COUNT} simulated runs keep every invariant`, { timeout: TIMEOUT_MS }, () => {
  let episodes = 0
  const outcomes = new Set<string>()
  const reasons = new Set<string>()
  let hedges = 0
  let won = 0
  for (let seed = FIRST; seed < FIRST + COUNT; seed++) {
    const simulated = repeatable(seed)
    episodes += simulated.episodes
    hedges += simulated.hedges.started
    won += simulated.hedges.won
    for (const outcome of Object.keys(simulated.outcomes)) outcomes.add(outcome)
    for (const reason of Object.keys(simulated.reasons)) reasons.add(reason)
  }
  expect(episodes).toBeGreaterThan(0)
  if (COUNT >= 2_000) {
    // A search that never meets an outcome proves nothing about it.
    expect(won).toBeGreaterThan(100)
    expect(hedges - won).toBeGreaterThan(100)
    expect([...reasons].sort()).toEqual([...GROUP_REASONS].sort())
    expect([...outcomes].sort()).toEqual([
      'agent_timeout',
      'cancelled_quorum',
      'cancelled_stale',
      'cancelled_user',
      'episode_error',
      'grade_error',
      'grade_timeout',
      'graded',
      'infra_create',
      'infra_lost',
      'limit',
      'model_error',
      'sandbox_oom',
      'setup_error',
      'task_invalid',
    ])
  }
})

test('a seed gives the same run again', () => {
  expect(simulate(7)).toEqual(simulate(7))
})

function repeatable(seed: number) {
  try {
    return simulate(seed)
  } catch (cause) {
    const command = `SANDLOT_SEED=${seed} npx vitest run packages/core/src/simulation`
    throw new Error(`seed ${seed} failed; it fails again with\n  ${command}\n${cause}`, { cause })
  }
}
