import type { RunReport } from '@sandlot/protocol'
import { episodeId } from '../episode/episode-id.ts'
import { CORE_LIMITS } from '../limits.ts'
import type { Episode, Run } from '../run/run.ts'
import { waitsFor } from './standing.ts'

export type Longest = NonNullable<RunReport['longest']>[number]

/** The attempts that have gone on for the longest, the oldest first. Takes a look at every slot that is taken. */
export function longestOf(run: Run): Longest[] {
  const oldest: { episode: Episode; sinceMs: number }[] = []
  for (const episode of run.index.slots) {
    const sinceMs = episode.current?.admittedAtMs
    if (sinceMs === undefined || episode.phase === 'releasing') continue
    const at = oldest.findIndex((each) => each.sinceMs > sinceMs)
    if (at === -1 && oldest.length >= CORE_LIMITS.longestReported) continue
    oldest.splice(at === -1 ? oldest.length : at, 0, { episode, sinceMs })
    oldest.length = Math.min(oldest.length, CORE_LIMITS.longestReported)
  }
  return oldest.map(({ episode, sinceMs }) => toldOf(run, episode, sinceMs))
}

function toldOf(run: Run, episode: Episode, sinceMs: number): Longest {
  const { key, attempt, phase, phaseAtMs } = episode
  const worker = run.workers.get(episode.current?.worker ?? '')
  return {
    ...{ key, episode: episodeId(run.policy.run, episode.index), attempt },
    ...{ sinceMs, phase, phaseSinceMs: phaseAtMs },
    waits: waitsFor(run, episode),
    heardMs: worker?.renewedAtMs ?? null,
  }
}
