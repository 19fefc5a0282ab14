import { expect, test } from 'vitest'
import { type Diagnosis, diagnose, isUnfit } from './diagnose.ts'
import { suggestTimeoutMs } from './suggest-timeout.ts'
import type { Trial, TrialVerdict } from './trial.ts'

const SIGNS: Readonly<Record<string, TrialVerdict>> = {
  '+': 'pass',
  '-': 'fail',
  '!': 'fault',
  '?': 'nothing',
}

function trialsOf(role: Trial['role'], signs: string, agentMs: number): Trial[] {
  return [...signs].map((sign) => ({
    role,
    verdict: SIGNS[sign] ?? 'nothing',
    score: null,
    what: `came to ${sign}`,
    agentMs,
    gradeMs: 1,
  }))
}

/** `+` solved, `-` not, `!` a fault of the task, `?` nothing was learnt. */
function diagnosed(
  gold: string,
  none: string,
  { agentMs = 1_000, timeoutMs = 60_000 } = {},
): Diagnosis {
  const trials = [...trialsOf('gold', gold, agentMs), ...trialsOf('null', none, agentMs)]
  return diagnose({ key: 'a', trials, timeoutMs })
}

test.each([
  ['+++', '---', []],
  ['---', '---', ['broken']],
  ['!!!', '---', ['broken']],
  ['-!?', '---', ['broken', 'undecided']],
  ['++-', '---', ['flaky']],
  ['+!+', '---', ['flaky']],
  ['+++', '+++', ['free']],
  ['+++', '+--', ['flaky']],
  ['+++', '!!!', ['broken']],
  ['+++', '-!-', ['flaky']],
  ['---', '+++', ['broken', 'free']],
  ['++-', '-+-', ['flaky', 'flaky']],
  ['???', '---', ['undecided']],
  ['++?', '--?', ['undecided']],
  ['???', '???', ['undecided']],
  ['', '---', ['unproven']],
  ['', '+++', ['free', 'unproven']],
  ['+', '-', []],
])('gold %s and null %s: %j', (gold, none, conditions) => {
  const { findings } = diagnosed(gold, none)
  expect(findings.map(({ condition }) => condition)).toEqual(conditions)
})

test('a fault of the platform never speaks against a task', () => {
  for (const [gold, none] of [
    ['???', '???'],
    ['+??', '-??'],
    ['++?', '---'],
  ] as const) {
    expect(isUnfit(diagnosed(gold, none))).toBe(false)
  }
})

test('the reason is what most trials came to', () => {
  expect(diagnosed('!!-', '---').findings).toEqual([
    { condition: 'broken', why: 'gold: came to !' },
  ])
  expect(diagnosed('++-', '---').findings).toEqual([
    { condition: 'flaky', why: 'gold solves it in 2 of 3 trials; else came to -' },
  ])
})

test('time is judged by the trials that solved the task', () => {
  const slow = diagnosed('+++', '---', { agentMs: 40_000 })
  expect(slow.findings).toEqual([{ condition: 'tight', why: 'gold needs 40s of 1m' }])
  expect(slow).toMatchObject({ goldP95Ms: 40_000, suggestedTimeoutMs: 120_000 })
  expect(isUnfit(slow)).toBe(false)
  expect(diagnosed('---', '---', { agentMs: 40_000 })).toMatchObject({
    goldP95Ms: null,
    suggestedTimeoutMs: null,
  })
})

test('a time that is suggested is round, and several times what gold needs', () => {
  const given = [1, 3_333, 3_334, 20_000, 20_001, 100_000, 600_000]
  expect(given.map(suggestTimeoutMs)).toEqual([
    10_000, 10_000, 20_000, 60_000, 90_000, 300_000, 1_800_000,
  ])
})
