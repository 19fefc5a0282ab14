import type { HedgePhase } from '@sandlot/protocol'
import { addToSketch } from '../report/sketch.ts'
import { attemptOf } from '../run/effects.ts'
import type { Episode, Run } from '../run/run.ts'
import { hedgePhaseOf } from './hedge.ts'

/** How long a part of an attempt took, or for how long it had gone on when it was stopped. */
export function noteTook(run: Run, episode: Episode, how: 'ended' | 'stopped', atMs: number): void {
  const phase = hedgePhaseOf(episode.phase)
  if (phase === undefined || typeof run.policy.hedge?.after !== 'string') return
  addToSketch(run.totals.hedges.took[phase][how], tookMs(run, episode, atMs))
}

/** Without the time in which there was no coordinator. */
export function tookMs(run: Run, episode: Episode, atMs: number): number {
  return Math.max(0, atMs - run.downMs - episode.sinceMs)
}

/** When the part that an attempt is in began, by the time in which there was a coordinator. */
export function beganMs(episode: Episode, phase: HedgePhase): number {
  const { downAtMs, agentSinceMs } = attemptOf(episode)
  return phase === 'agent' ? (agentSinceMs ?? 0) : episode.phaseAtMs - downAtMs
}
