import { OUTCOMES } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { trialOf } from './trial.ts'

const phases = {
  queuedMs: 0,
  createMs: 0,
  setupMs: 0,
  agentMs: 7,
  modelMs: 0,
  gradeMs: 3,
  teardownMs: 0,
}
const row = {
  outcome: 'graded',
  valid: true,
  reward: 1,
  rewards: null,
  error: null,
  phases,
} as const
const PASS = { reward: 1 }

test.each([
  [{}, PASS, 'pass', 'reward 1'],
  [{ reward: 0.5 }, PASS, 'fail', 'reward 0.5'],
  [{ reward: 0.5 }, { reward: 0.5 }, 'pass', 'reward 0.5'],
  [{ outcome: 'agent_timeout', reward: 1 }, PASS, 'pass', 'agent_timeout, reward 1'],
  [{ outcome: 'sandbox_oom', reward: 0 }, PASS, 'fail', 'sandbox_oom, reward 0'],
  [{ reward: null, rewards: { reward: 1 } }, PASS, 'pass', 'reward 1'],
  [
    { reward: null, rewards: { a: 1, b: 0 } },
    PASS,
    'nothing',
    'it gives no reward called reward (it gives a, b)',
  ],
  [{ reward: null, rewards: { a: 1, b: 0 } }, { reward: 1, name: 'a' }, 'pass', 'a 1'],
  [{ reward: 1, rewards: { a: 0 } }, { reward: 1, name: 'a' }, 'fail', 'a 0'],
] as const)('%j by %j is %s', (given, pass, verdict, what) => {
  expect(trialOf('gold', { ...row, ...given }, pass)).toEqual({
    ...{ role: 'gold', verdict, what, agentMs: 7, gradeMs: 3 },
    score: verdict === 'nothing' ? null : expect.any(Number),
  })
})

test('of outcomes without a reward, only those by a fault of the task speak against it', () => {
  const invalid = { ...row, valid: false, reward: null, error: 'because' }
  const verdicts = OUTCOMES.map((outcome) => [
    outcome,
    trialOf('gold', { ...invalid, outcome }, PASS).verdict,
  ])
  expect(verdicts.filter(([, verdict]) => verdict === 'fault').map(([outcome]) => outcome)).toEqual(
    [
      ...['agent_timeout', 'limit', 'sandbox_oom'],
      ...['episode_error', 'setup_error', 'grade_error', 'grade_timeout', 'task_invalid'],
    ],
  )
  expect(trialOf('gold', { ...invalid, outcome: 'grade_error' }, PASS).what).toBe(
    'grade_error: because',
  )
})
