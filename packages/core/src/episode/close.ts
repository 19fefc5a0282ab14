import { leaveGroup } from '../group/apply-group.ts'
import { closeHedge } from '../hedge/apply-hedge.ts'
import { countCause } from '../report/causes.ts'
import { countEnding } from '../report/totals.ts'
import type { Effect } from '../run/effect.ts'
import { attemptOf } from '../run/effects.ts'
import { noteEnding } from '../run/failures.ts'
import type { Episode, Run } from '../run/run.ts'
import type { FinalEnding, RetryEnding } from './ending.ts'
import { moveEpisode } from './move.ts'
import { keepAttempt, rowOf } from './row.ts'

/** The attempt is over and its sandbox is gone: another one, or the episode's row. */
export function closeAttempt(
  run: Run,
  episode: Episode,
  atMs: number,
  effects: Effect[] | null,
): void {
  const { ending } = attemptOf(episode)
  if (episode.isHedge) {
    closeHedge(run, episode, atMs)
    return
  }
  if (ending === null) throw new Error(`episode ${episode.index} has no ending`)
  if (ending.next === 'final') endEpisode(run, episode, ending, atMs, effects)
  else retryEpisode(run, episode, ending, atMs)
}

/** The episode's one result: from here on it is a row that waits to be recorded, and counters. */
export function endEpisode(
  run: Run,
  episode: Episode,
  ending: FinalEnding,
  atMs: number,
  effects: Effect[] | null,
): void {
  const row = rowOf(run, episode, ending, atMs)
  const seq = run.nextSeq++
  run.unrecorded.set(seq, row)
  countEnding(run.totals, ending, row.flags, episode.current?.clock ?? null)
  const { outcome, cause } = ending
  countCause(run.totals.causes, { outcome, cause, retried: false, key: episode.key })
  noteEnding(run.failures, outcome)
  leaveGroup(run, episode, ending, { atMs, policyVersion: row.policyVersion })
  moveEpisode(run, episode, 'ended', { atMs })
  run.live.delete(episode.index)
  effects?.push({ type: 'append_result', seq, row })
}

function retryEpisode(run: Run, episode: Episode, ending: RetryEnding, atMs: number): void {
  keepAttempt(episode)
  episode.current = null
  if (ending.spends) episode.spent[ending.spends]++
  const { outcome, cause } = ending
  countCause(run.totals.causes, { outcome, cause, retried: true, key: episode.key })
  // Its group may have ended meanwhile.
  if (episode.peers) run.index.touched.add(episode.peers)
  if (ending.delayMs > 0) {
    moveEpisode(run, episode, 'backoff', { atMs, dueMs: atMs + ending.delayMs })
  } else {
    moveEpisode(run, episode, 'queued', { atMs })
  }
}
