import { parseQuantile } from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'
import { censoredQuantileMs } from '../report/censored.ts'
import { type Decision, emit } from '../run/decision.ts'
import { elapsedMs, whenOwnClock } from '../run/own-clock.ts'
import type { Run } from '../run/run.ts'
import type { Group } from './group.ts'

/** Cuts every group that waited long enough for its last members. */
export function expireCuts(decision: Decision): void {
  const { run, nowMs } = decision
  const { cuts } = run.index
  if (run.status !== 'running' || cuts.size === 0) return
  const afterMs = cutAfterMs(run, nowMs)
  if (afterMs === null) return
  let left: number = CORE_LIMITS.decisionsPerStep
  for (let next = cuts.peek(); next && left-- > 0; next = cuts.peek()) {
    if (nowMs < dueMsOf(run, next, afterMs)) return
    emit(decision, { type: 'group_cut', group: next.name })
  }
}

/** When the next cut is due, or has to be looked at; null: nothing waits for one. */
export function cutDueMs(run: Run): number | null {
  const { cuts, cutAfter } = run.index
  const next = cuts.peek()
  const cut = run.policy.group?.cut
  if (!next || !cut || run.status !== 'running') return null
  if (typeof cut.after === 'number') return dueMsOf(run, next, cut.after)
  if (cutAfter === null) return run.nowMs
  const againMs = cutAfter.atMs + CORE_LIMITS.quantileEveryMs
  if (cutAfter.ms === null) return againMs
  return Math.min(againMs, dueMsOf(run, next, cutAfter.ms))
}

/** One sum for whoever plans for it and whoever decides: two that differ in their last digit would wait for one another for ever. */
function dueMsOf(run: Run, { armedAtMs }: Group, afterMs: number): number {
  return whenOwnClock(run, (armedAtMs ?? 0) + afterMs) ?? Number.POSITIVE_INFINITY
}

/** How long after the start of its last member a group is cut; null where too little was seen to say so. */
function cutAfterMs(run: Run, nowMs: number): number | null {
  const after = run.policy.group?.cut?.after
  if (after === undefined || typeof after === 'number') return after ?? null
  const { cutAfter } = run.index
  if (cutAfter && nowMs < cutAfter.atMs + CORE_LIMITS.quantileEveryMs) return cutAfter.ms
  const ms = membersQuantileMs(run, parseQuantile(after) ?? 1, nowMs)
  run.index.cutAfter = { atMs: nowMs, ms }
  return ms
}

/** What so large a share of the members takes at most. Those that still run are known to take longer than they have. */
function membersQuantileMs(run: Run, share: number, nowMs: number): number | null {
  const { ended, stopped } = run.totals.groups
  if (ended.count < CORE_LIMITS.quantileSamplesMin) return null
  const running: number[] = []
  for (const episode of run.live.values()) {
    if (episode.startedMs !== null) running.push(elapsedMs(run, episode, nowMs))
  }
  return censoredQuantileMs({ ended, stopped, running }, share)
}
