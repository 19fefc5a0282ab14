import type { HedgePhase } from '@sandlot/protocol'
import type { EpisodePhase } from '../episode/phase.ts'
import type { Episode, Run } from '../run/run.ts'

/**
 * An episode that is hedged has two attempts in progress: its own, in `live`, and its hedge, an `Episode` of its own in `hedges` that
 * shares the task and the history. Each goes through the phases by itself and holds a slot.
 *
 * - Whichever is prepared first goes on, and the other is given up; where the agent's part is hedged, whichever gives a verdict first.
 * - An attempt that fails while the other goes on is over, and no budget pays: the other is its retry.
 * - The one that goes on is the episode's: `live` has it from then on, and `hedges` the one that is being released.
 * - What ends the episode, by a person, by its group, or because its task can't be done, ends both.
 */
export function otherOf(run: Run, episode: Episode): Episode | undefined {
  return (episode.isHedge ? run.live : run.hedges).get(episode.index)
}

/** The other attempt, if it still goes on. */
export function otherInProgress(run: Run, episode: Episode): Episode | undefined {
  const other = otherOf(run, episode)
  return other?.current && other.phase !== 'releasing' ? other : undefined
}

/** Of the two attempts the one of this number. */
export function attemptInProgress(
  run: Run,
  of: { readonly episode: number; readonly attempt: number },
): Episode | undefined {
  const episode = run.live.get(of.episode)
  if (episode?.attempt === of.attempt && episode.current) return episode
  const hedge = run.hedges.get(of.episode)
  return hedge?.attempt === of.attempt ? hedge : undefined
}

/** All attempts and episodes that a run has to do with. */
export function* everyone(run: Run): Generator<Episode> {
  yield* run.live.values()
  yield* run.hedges.values()
}

/** The part of an attempt in which it may be hedged. */
export function hedgePhaseOf(phase: EpisodePhase): HedgePhase | undefined {
  return PHASES[phase]
}

const PHASES: Readonly<Partial<Record<EpisodePhase, HedgePhase>>> = {
  creating: 'create',
  setup: 'setup',
  agent: 'agent',
  model: 'agent',
}
