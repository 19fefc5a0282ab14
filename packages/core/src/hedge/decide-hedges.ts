import { type HedgePhase, parseQuantile } from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'
import { censoredQuantileMs } from '../report/censored.ts'
import { admissionBound } from '../run/admission.ts'
import { type Decision, emit } from '../run/decision.ts'
import type { Episode, Run } from '../run/run.ts'
import { hedgePhaseOf } from './hedge.ts'
import { tookMs } from './took.ts'

/** Begins a second attempt beside each that takes unusually long, where there is room for one. */
export function decideHedges(decision: Decision): void {
  const { run, nowMs } = decision
  if (run.policy.hedge === null || run.status !== 'running') return
  let left: number = CORE_LIMITS.decisionsPerStep
  for (const phase of run.policy.hedge.phases) {
    const heap = run.index.straggling[phase]
    for (let next = heap.peek(); next && left-- > 0; next = heap.peek()) {
      if (admissionBound(run) !== null) return
      const afterMs = hedgeAfterMs(run, phase, nowMs)
      if (afterMs === null || nowMs < dueMsOf(run, next, afterMs)) break
      // The sandbox of one that lost before is still being released: there are never three.
      if (run.hedges.has(next.index)) {
        heap.remove(next)
        continue
      }
      emit(decision, { type: 'hedged', episode: next.index, attempt: next.made + 1 })
    }
  }
}

/** When the next hedge is due, or has to be looked at; null: none is, or there is no room for one. */
export function hedgeDueMs(run: Run): number | null {
  const { hedge } = run.policy
  if (hedge === null || run.status !== 'running' || admissionBound(run) !== null) return null
  let dueMs = Number.POSITIVE_INFINITY
  for (const phase of hedge.phases) dueMs = Math.min(dueMs, phaseDueMs(run, phase))
  return Number.isFinite(dueMs) ? dueMs : null
}

function phaseDueMs(run: Run, phase: HedgePhase): number {
  const next = run.index.straggling[phase].peek()
  const after = run.policy.hedge?.after
  if (!next || after === undefined) return Number.POSITIVE_INFINITY
  if (typeof after === 'number') return dueMsOf(run, next, after)
  const known = run.index.hedgeAfter[phase]
  if (known === undefined) return run.nowMs
  const againMs = known.atMs + CORE_LIMITS.quantileEveryMs
  return known.ms === null ? againMs : Math.min(againMs, dueMsOf(run, next, known.ms))
}

/** One sum for whoever plans for it and whoever decides. */
function dueMsOf(run: Run, { sinceMs }: Episode, afterMs: number): number {
  return sinceMs + run.downMs + afterMs
}

/** How long a part of an attempt takes before it is hedged; null where too little was seen to say so. */
function hedgeAfterMs(run: Run, phase: HedgePhase, nowMs: number): number | null {
  const after = run.policy.hedge?.after
  if (after === undefined || typeof after === 'number') return after ?? null
  const known = run.index.hedgeAfter[phase]
  if (known && nowMs < known.atMs + CORE_LIMITS.quantileEveryMs) return known.ms
  const ms = phaseQuantileMs(run, phase, parseQuantile(after) ?? 1, nowMs)
  run.index.hedgeAfter[phase] = { atMs: nowMs, ms }
  return ms
}

function phaseQuantileMs(run: Run, phase: HedgePhase, share: number, nowMs: number): number | null {
  const { ended, stopped } = run.totals.hedges.took[phase]
  if (ended.count < CORE_LIMITS.quantileSamplesMin) return null
  const running: number[] = []
  for (const episode of run.index.slots) {
    if (hedgePhaseOf(episode.phase) === phase) running.push(tookMs(run, episode, nowMs))
  }
  return censoredQuantileMs({ ended, stopped, running }, share)
}
