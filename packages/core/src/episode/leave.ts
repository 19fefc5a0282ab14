import type { Outcome } from '@sandlot/protocol'
import type { Episode, Leaves, Run } from '../run/run.ts'
import type { Ending } from './ending.ts'
import type { EpisodePhase } from './phase.ts'

/**
 * What is taken out of the sandbox of an attempt whose end has just been decided; null: nothing. Only of one whose row this will be,
 * and not of what somebody wanted to be over.
 */
export function leavesOf(run: Run, episode: Episode, ending: Ending): Leaves | null {
  const { collects, keep } = run.policy
  if (ending.next === 'retry' || episode.isHedge || UNWANTED.has(ending.outcome)) return null
  if (episode.current?.sandbox == null) return null
  const failed = ending.outcome !== 'graded'
  const snapshot = keep !== null && run.kept < keep.max && (keep.of === 'all' || failed)
  // Before the agent's part there is only what the set-up left.
  const artifacts = collects && !BEFORE_AGENT.has(episode.phase)
  return artifacts || snapshot ? { artifacts, snapshot } : null
}

const UNWANTED: ReadonlySet<Outcome> = new Set([
  'cancelled_user',
  'cancelled_quorum',
  'cancelled_stale',
])

const BEFORE_AGENT: ReadonlySet<EpisodePhase> = new Set(['creating', 'setup', 'ready', 'offered'])
