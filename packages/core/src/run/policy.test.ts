import { OUTCOMES, type Outcome, POLICY_ACTIONS } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { OUTCOME_RULES } from '../outcome/rules.ts'
import { compileRun } from './policy.ts'

const ids = { run: 'rn_x', from: 'sha256:x' }

test('what is left open has the defaults', () => {
  const policy = compileRun({ concurrency: 3, retry: { infra: 0 }, timeout: { agent: 5 } }, ids)
  expect(policy).toMatchObject({
    concurrency: 3,
    setup: false,
    grade: 'none',
    retry: { infra: 0, model: 2, grade: 1, timeout: 0 },
    timeoutMs: {
      create: 60_000,
      setup: 300_000,
      agent: 5,
      model: 300_000,
      grade: 300_000,
      total: null,
    },
  })
})

test('no failure of infrastructure, model or grader can be made a zero', () => {
  const refused = OUTCOMES.filter((outcome) => !allows(outcome, 'zero'))
  expect(refused).toEqual([
    'model_error',
    'infra_create',
    'infra_lost',
    'grade_error',
    'grade_timeout',
    'cancelled_user',
    'cancelled_quorum',
    'cancelled_stale',
    'task_invalid',
  ])
})

test.each(OUTCOMES)('%s allows what its rule says', (outcome) => {
  for (const action of POLICY_ACTIONS) {
    expect(allows(outcome, action)).toBe(OUTCOME_RULES[outcome].actions.includes(action))
  }
})

function allows(outcome: Outcome, action: (typeof POLICY_ACTIONS)[number]): boolean {
  try {
    compileRun({ concurrency: 1, policy: { [outcome]: action } }, ids)
    return true
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_request' })
    return false
  }
}
