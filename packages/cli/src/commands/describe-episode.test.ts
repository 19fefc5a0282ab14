import type { EpisodeView, ResultRow } from 'sandlot'
import { expect, test } from 'vitest'
import { describeEpisode } from './describe-episode.ts'

const PHASES = { queuedMs: 0, createMs: 1, setupMs: 0, agentMs: 2, modelMs: 0, gradeMs: 3 }

function described(row: Partial<ResultRow>): string {
  const whole = {
    ...{ outcome: 'graded', valid: true, reward: 0, rewards: null, flags: [], dropped: false },
    ...{ cause: [], data: null, artifacts: [], endedAt: '2026-12-01T00:00:00.000Z' },
    usage: { cpuMs: 1, memoryPeakBytes: 1, diskBytes: 1 },
    ...row,
  }
  const attempt = { attempt: 1, outcome: 'graded', sandbox: null, cause: [], phases: PHASES }
  const view = {
    ...{ episode: 'ep_1', key: 'a', group: 'a', member: 0, attempts: [attempt], progress: [] },
    row: whole,
  } as unknown as EpisodeView
  return describeEpisode({ run: 'r', view, execs: [], log: '', nowMs: 0 })
}

test.each([
  [{ exitCode: 3, signal: null, durationMs: 153 }, /command +exited with 3 after 153ms/],
  [{ exitCode: null, signal: 'SIGKILL', durationMs: 20 }, /command +was ended by SIGKILL after/],
])('of a program it is told how it ended: %j', (data, told) => {
  expect(described({ data })).toMatch(told)
})

test('what an episode of one’s own leaves as data is no end of a program', () => {
  expect(described({ data: { exitCode: 3 } })).not.toMatch(/^command/m)
})

test('a cause of several lines is read as such', () => {
  const cause = ['no verdict: Traceback:\n  File "/check.py"\nValueError', 'tried again']
  expect(described({ cause })).toMatch(
    /why +no verdict: Traceback:\n +File "\/check\.py"\n +ValueError\n +tried again\n/,
  )
})
