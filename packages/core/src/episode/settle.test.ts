import { OUTCOMES, type Outcome } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { OUTCOME_RULES } from '../outcome/rules.ts'
import { scriptedRun } from '../simulation/scripted-run.ts'
import { settle } from './settle.ts'

const none = { infra: 0, model: 0, grade: 0, timeout: 0 }

function settled(outcome: Outcome, action?: 'keep' | 'zero' | 'mask' | 'retry' | 'drop') {
  const script = scriptedRun({ retry: none, ...(action ? { policy: { [outcome]: action } } : {}) })
  script.put(1)
  const episode = script.run.live.get(0)
  if (!episode) throw new Error('no episode')
  const verdict = { reward: 0.5, rewards: null }
  return settle(script.run, episode, { outcome, cause: [], verdict })
}

test.each(OUTCOMES)('%s: its default', (outcome) => {
  const { valid, reward } = OUTCOME_RULES[outcome]
  const expected = !valid ? null : reward === 'zero' ? 0 : 0.5
  expect(settled(outcome)).toMatchObject({ next: 'final', outcome, valid, reward: expected })
})

test.each([
  ['graded', 'zero', true, 0],
  ['graded', 'mask', false, null],
  ['agent_timeout', 'mask', false, null],
  ['limit', 'drop', false, null],
  ['episode_error', 'zero', true, 0],
  ['episode_error', 'keep', false, null],
  ['setup_error', 'zero', true, 0],
  ['infra_lost', 'mask', false, null],
  ['sandbox_oom', 'mask', false, null],
] as const)('%s, policy %s: valid %s, reward %s', (outcome, action, valid, reward) => {
  expect(settled(outcome, action)).toMatchObject({ next: 'final', valid, reward })
})

test.each(['graded', 'episode_error', 'sandbox_oom', 'limit'] as const)(
  '%s, policy retry',
  (outcome) => {
    expect(settled(outcome, 'retry')).toMatchObject({ next: 'retry', outcome, spends: 'policy' })
  },
)
