import { expect, test } from 'vitest'
import { RUN_MOVES, RUN_STATUSES } from '../run/status.ts'
import { scriptedRun } from '../simulation/scripted-run.ts'
import { IllegalMove, moveEpisode } from './move.ts'
import { EPISODE_MOVES, EPISODE_PHASES } from './phase.ts'

test('an illegal move names both states, and changes nothing', () => {
  const { run, put } = scriptedRun()
  put(1)
  const episode = run.live.get(0)
  if (!episode) throw new Error('no episode')
  const move = () => moveEpisode(run, episode, 'grading', { atMs: 1 })
  expect(move).toThrow(IllegalMove)
  expect(move).toThrow("episode 0 can't go from queued to grading")
  expect(episode.phase).toBe('queued')
})

test.each([
  ['episode', EPISODE_PHASES, EPISODE_MOVES, 'queued', 'ended'],
  ['run', RUN_STATUSES, RUN_MOVES, 'waiting', 'finished'],
] as const)(
  'every state of the %s can be reached, and its end from every state',
  (_, states, moves, first, last) => {
    const table = moves as Readonly<Record<string, readonly string[]>>
    const reach = (from: string, seen = new Set<string>()): Set<string> => {
      if (!seen.has(from)) {
        seen.add(from)
        for (const next of table[from] ?? []) reach(next, seen)
      }
      return seen
    }
    expect(reach(first).size).toBe(states.length)
    for (const state of states) expect(reach(state).has(last)).toBe(true)
    expect(table[last]).toEqual([])
  },
)
