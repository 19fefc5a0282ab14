import { newAttempt } from '../episode/attempt.ts'
import { dueAfter } from '../episode/clock.ts'
import { moveEpisode } from '../episode/move.ts'
import { keepAttempt } from '../episode/row.ts'
import { acquireEffect, attemptOf } from '../run/effects.ts'
import type { EventOf, Sink } from '../run/event.ts'
import type { Episode, Run } from '../run/run.ts'
import { timeoutsOf } from '../run/timeouts-of.ts'
import { hedgePhaseOf, otherInProgress } from './hedge.ts'

/** A second attempt begins beside the one that straggles. */
export function applyHedged(
  run: Run,
  episode: Episode,
  event: EventOf<'hedged'>,
  effects: Sink,
): void {
  const { atMs } = event
  const { create, total } = timeoutsOf(run, episode)
  run.index.straggling[hedgePhaseOf(episode.phase) ?? 'create'].remove(episode)
  attemptOf(episode).hedged = true
  episode.made = event.attempt
  const attempt = { ...newAttempt(run, atMs, 0), hedged: true }
  attempt.totalDueMs = total === null ? null : atMs + total
  const hedge: Episode = {
    ...episode,
    ...{ isHedge: true, attempt: event.attempt, current: attempt },
    ...{ phase: 'queued', phaseAtMs: atMs, dueMs: null },
    ...{ orderAt: -1, dueAt: -1, straggleAt: -1 },
  }
  run.hedges.set(hedge.index, hedge)
  run.index.counts.queued++
  run.totals.attempts++
  run.totals.hedges.started++
  moveEpisode(run, hedge, 'creating', { atMs, dueMs: dueAfter(attempt, atMs, create) })
  effects?.push(acquireEffect(hedge))
}

/** An attempt ended. True: the other one goes on, and this one is only evidence. */
export function yieldToOther(run: Run, episode: Episode): boolean {
  const other = otherInProgress(run, episode)
  if (other && !episode.isHedge) goOnWith(run, other, episode)
  if (episode.isHedge) keepAttempt(episode)
  return episode.isHedge
}

/** The sandbox of the attempt that did not go on is gone. */
export function closeHedge(run: Run, hedge: Episode, atMs: number): void {
  moveEpisode(run, hedge, 'ended', { atMs })
  run.hedges.delete(hedge.index)
}

/** From now on the hedge is the episode's attempt. */
function goOnWith(run: Run, winner: Episode, loser: Episode): void {
  run.totals.hedges.won++
  run.live.set(winner.index, winner)
  run.hedges.set(loser.index, loser)
  winner.isHedge = false
  loser.isHedge = true
  winner.made = Math.max(winner.made, loser.made)
  winner.workersLost = Math.max(winner.workersLost, loser.workersLost)
  winner.peers?.live.delete(loser)
  winner.peers?.live.add(winner)
}
