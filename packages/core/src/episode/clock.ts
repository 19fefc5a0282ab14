import { attemptOf } from '../run/effects.ts'
import type { Attempt, Episode, PhaseClock, Run } from '../run/run.ts'
import type { EpisodePhase } from './phase.ts'

/**
 * What the platform has taken, since the phase began, from the time that the phase has: all of the
 * coordinator's absence, and for a worker what its event loop and its connection cost.
 */
export function platformMs(run: Run, attempt: Attempt): number {
  const worker = attempt.worker === null ? undefined : run.workers.get(attempt.worker)
  return run.downMs - attempt.downAtMs + (worker ? worker.lagMs - attempt.lagAtMs : 0)
}

/** From here on what the platform takes is counted anew. */
export function startPlatformClock(run: Run, attempt: Attempt): void {
  const worker = attempt.worker === null ? undefined : run.workers.get(attempt.worker)
  attempt.extendedMs = 0
  attempt.downAtMs = run.downMs
  attempt.lagAtMs = worker?.lagMs ?? 0
}

/** Adds the time since the phase began to its clock, without the platform's. */
export function stopClock(run: Run, episode: Episode, atMs: number): void {
  const attempt = attemptOf(episode)
  const clock = CLOCKS[episode.phase]
  if (clock === undefined) return
  const ours = platformMs(run, attempt)
  const elapsedMs = Math.max(0, atMs - episode.phaseAtMs - ours)
  attempt.clock[clock] += elapsedMs
  if (attempt.totalDueMs !== null) {
    attempt.totalDueMs += Math.max(0, ours - attempt.extendedMs)
  }
}

/** When a phase that has so much time is over: the attempt's total time ends it as well. */
export function dueAfter(attempt: Attempt, atMs: number, phaseMs: number): number {
  const dueMs = atMs + Math.max(0, phaseMs)
  return attempt.totalDueMs === null ? dueMs : Math.min(dueMs, attempt.totalDueMs)
}

export const CLOCKS: Readonly<Partial<Record<EpisodePhase, keyof PhaseClock>>> = {
  creating: 'createMs',
  setup: 'setupMs',
  agent: 'agentMs',
  model: 'modelMs',
  grading: 'gradeMs',
  releasing: 'teardownMs',
}
