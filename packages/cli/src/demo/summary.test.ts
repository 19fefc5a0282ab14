import type { ResultRow } from 'sandlot'
import { expect, test } from 'vitest'
import { empty, gold } from './policies.ts'
import type { PolicyOutcome } from './run-policies.ts'
import { formatSummary, percentilesOf, summarize } from './summary.ts'

function row(outcome: ResultRow['outcome'], reward: number | null, agentMs: number): ResultRow {
  return {
    outcome,
    reward,
    flags: outcome === 'graded' ? [] : ['output'],
    phases: {
      queuedMs: 1,
      createMs: 20,
      setupMs: 0,
      agentMs,
      modelMs: 0,
      gradeMs: 5,
      teardownMs: 2,
    },
  } as unknown as ResultRow
}

const OUTCOMES: readonly PolicyOutcome[] = [
  {
    policy: gold,
    run: 'run-a',
    rows: [row('graded', 1, 10), row('graded', 0, 30), row('agent_timeout', 0, 8_000)],
    wrong: [],
  },
  { policy: empty, run: 'run-b', rows: [row('grade_error', null, 20)], wrong: [] },
]

test('percentiles are values that were measured: the nearest rank', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index)
  expect(percentilesOf(hundred)).toEqual({ p50Ms: 50, p95Ms: 95, p99Ms: 99 })
  expect(percentilesOf([3, 1, 2])).toEqual({ p50Ms: 2, p95Ms: 3, p99Ms: 3 })
  expect(percentilesOf([7])).toEqual({ p50Ms: 7, p95Ms: 7, p99Ms: 7 })
  expect(percentilesOf([])).toEqual({ p50Ms: 0, p95Ms: 0, p99Ms: 0 })
})

test('outcomes, flags and means are counted by policy', () => {
  const summary = summarize(OUTCOMES, 2_000, 0)
  expect(summary).toMatchObject({
    episodes: 4,
    perSecond: 2,
    wallMs: 2_000,
    leaked: 0,
    policies: {
      gold: { outcomes: { graded: 2, agent_timeout: 1 }, flags: { output: 1 }, rewardMean: 0.333 },
      empty: { outcomes: { grade_error: 1 }, flags: { output: 1 }, rewardMean: null },
    },
  })
  expect(Object.keys(summary.phases)).toEqual(['queued', 'create', 'agent', 'grade', 'teardown'])
  expect(summary.phases.agent).toEqual({ p50Ms: 20, p95Ms: 8_000, p99Ms: 8_000 })
})

test('the table says the same', () => {
  const lines = formatSummary(summarize(OUTCOMES, 2_000, 3)).split('\n')
  expect(lines[1]).toMatch(/^gold +graded 2, agent_timeout 1 +output 1 +0\.333$/)
  expect(lines[2]).toMatch(/^empty +grade_error 1 +output 1 +-$/)
  expect(lines.find((line) => line.startsWith('create'))).toMatch(/^create +20 +20 +20$/)
  expect(lines.at(-2)).toBe('4 episodes in 2.0 s, 2 per second')
  expect(lines.at(-1)).toBe('3 sandboxes left')
})

test('nothing at all is a summary too', () => {
  expect(summarize([], 0, 0)).toMatchObject({ episodes: 0, perSecond: 0 })
})
