import { hedgePhaseOf } from '../hedge/hedge.ts'
import { beganMs } from '../hedge/took.ts'
import type { Heap } from '../order/heap.ts'
import type { Episode, Run, RunIndex } from '../run/run.ts'
import { EPISODE_MOVES, type EpisodePhase } from './phase.ts'

/** A move that the table of states does not have: a fault of core, never of its caller. */
export class IllegalMove extends Error {
  override readonly name = 'IllegalMove'

  constructor(what: string, from: string, to: string) {
    super(`${what} can't go from ${from} to ${to}`)
  }
}

/** The one place that changes an episode's phase, and every index that hangs on it. */
export function moveEpisode(
  run: Run,
  episode: Episode,
  to: EpisodePhase,
  at: { readonly atMs: number; readonly dueMs?: number | null },
): void {
  const from = episode.phase
  if (!EPISODE_MOVES[from].includes(to)) throw new IllegalMove(`episode ${episode.index}`, from, to)
  const { index } = run
  heapOf(index, from)?.remove(episode)
  stragglingOf(index, from)?.remove(episode)
  if (from === 'backoff') index.backoff.delete(episode)
  index.due.remove(episode)
  index.counts[from]--

  episode.phase = to
  episode.phaseAtMs = at.atMs
  episode.dueMs = at.dueMs ?? null
  if (to === 'ended') {
    index.slots.delete(episode)
    return
  }
  indexEpisode(run, episode)
}

/** Enters an episode into the indexes for the phase it is in. */
export function indexEpisode(
  { index, policy }: Pick<Run, 'index' | 'policy'>,
  episode: Episode,
): void {
  const { phase } = episode
  index.counts[phase]++
  heapOf(index, phase)?.push(episode)
  if (phase === 'backoff') index.backoff.add(episode)
  if (episode.dueMs !== null) index.due.push(episode)
  if (phase === 'queued' || phase === 'backoff') index.slots.delete(episode)
  else index.slots.add(episode)
  const part = hedgePhaseOf(phase)
  if (part === undefined) return
  episode.sinceMs = beganMs(episode, part)
  const mayBeHedged = policy.hedge?.phases.includes(part) && !episode.current?.hedged
  if (mayBeHedged) index.straggling[part].push(episode)
}

function stragglingOf(index: RunIndex, phase: EpisodePhase): Heap<Episode> | undefined {
  const part = hedgePhaseOf(phase)
  return part && index.straggling[part]
}

function heapOf(index: RunIndex, phase: EpisodePhase): Heap<Episode> | undefined {
  if (phase === 'queued') return index.queued
  if (phase === 'ready') return index.ready
  if (phase === 'grade_ready') return index.gradeReady
  return undefined
}
