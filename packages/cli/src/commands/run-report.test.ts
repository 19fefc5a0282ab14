import type { RunReport } from 'sandlot'
import { expect, test } from 'vitest'
import { describeReport } from './run-report.ts'

const REPORT = {
  run: {
    name: 'nightly',
    state: 'finished',
    reason: null,
    counts: { tasks: 2, queued: 0, running: 0, grading: 0, done: 2 },
    outcomes: { graded: 1, infra_lost: 1 },
    flags: {},
  },
  elapsedMs: 60_000,
  perSecond: 0.5,
  limiting: 'none',
  rewardMean: 1,
  attempts: 4,
  retries: 2,
  causes: [
    {
      outcome: 'infra_lost',
      retried: true,
      cause: 'the agent fell silent',
      count: 1,
      example: 'a',
    },
    { outcome: null, retried: true, cause: 'the daemon was stopped', count: 1, example: 'a' },
    {
      outcome: 'infra_lost',
      retried: false,
      cause: 'the agent fell silent',
      count: 1,
      example: 'a',
    },
  ],
  phases: { create: { count: 4, p50Ms: 5, p95Ms: 9, p99Ms: 9 } },
} as unknown as RunReport

test('groups are told with what became of them', () => {
  const groups = {
    ...{ open: 1, complete: 6, failed: 1 },
    reasons: { size: 4, cut: 2, dropped: 1 },
    stragglers: { episodes: 3, share: 0.125, timeShare: 0.4 },
  }
  const lines = describeReport({ ...REPORT, groups }).split('\n')
  expect(lines).toContain('groups               6 of 8 complete, 1 failed')
  expect(lines).toContain('ended by             size 4, cut 2, dropped 1')
  expect(lines).toContain(
    'stragglers           3 not waited for: 12.5 % of the members, 40.0 % of their time',
  )
  expect(describeReport(REPORT)).not.toContain('groups')
})

test('what was hedged is told', () => {
  const text = describeReport({ ...REPORT, hedges: { started: 5, won: 3 } })
  expect(text).toContain('hedged               5, of which 3 were first')
})

test('attempts are told in the words of the guide', () => {
  const lines = describeReport(REPORT).split('\n')
  expect(lines).toContain('attempts             4, of which 2 tried an episode again')
  const again = lines.findIndex((line) => line.startsWith('TRIED AGAIN'))
  expect(lines.slice(again + 1, again + 3)).toEqual([
    'given up     1      a            the daemon was stopped',
    'infra_lost   1      a            the agent fell silent',
  ])
})

test('a run that has not begun has no outcomes, and no phases that nothing went through', () => {
  const none = { count: 0, p50Ms: 0, p95Ms: 0, p99Ms: 0 }
  const run = { ...REPORT.run, outcomes: {} }
  const idle = describeReport({ ...REPORT, run, phases: { ...REPORT.phases, create: none } })
  expect(idle).toMatch(/^outcomes +-$/m)
  expect(idle).not.toContain('PHASE')
  const phases = { ...REPORT.phases, setup: { ...none, count: 4 } }
  expect(describeReport({ ...REPORT, phases })).not.toMatch(/^setup/m)
})

test('what goes on for the longest is told, and that its worker is silent', () => {
  const minuteAgoMs = Date.now() - 60_000
  const longest = ['a', 'b'].map((key) => ({
    ...{ key, episode: `ep_${key}`, attempt: 1, sinceMs: minuteAgoMs, phaseSinceMs: minuteAgoMs },
    ...{ phase: 'agent' as const, waits: null, heardMs: key === 'a' ? minuteAgoMs : Date.now() },
  }))
  const text = describeReport({ ...REPORT, longest })
  expect(text).toMatch(/^LONGEST +FOR +PHASE +WAITS FOR$/m)
  expect(text).toMatch(
    /^a +\S+ +agent for \S+ +its worker was not heard for \S+: its event loop may/m,
  )
  expect(text).toMatch(/^b +\S+ +agent for \S+ +-$/m)
  expect(text).toContain('`sandlot episode ep_a` tells')
  expect(describeReport(REPORT)).not.toContain('LONGEST')
})
