import { PHASES, type RunReport, type RunView } from '@sandlot/protocol'
import type { Run } from '../run/run.ts'
import { topCauses } from './causes.ts'
import { limitingFactor } from './limiting.ts'
import type { Reading } from './reading.ts'
import { saturationOf } from './saturation.ts'
import { quantileMs } from './sketch.ts'

/** What core knows of a run's report; the coordinator adds names and digests. */
export interface RunFacts extends Omit<RunReport, 'run' | 'saturation' | 'cost' | 'longest'> {
  readonly cost: { readonly micros: number; readonly retriesMicros: number } | null
  readonly saturation: NonNullable<RunReport['saturation']>
  readonly state: RunView['state']
  readonly reason: string | null
  readonly counts: RunView['counts']
  readonly outcomes: RunView['outcomes']
  readonly flags: RunView['flags']
  readonly policyVersion: number
}

/** `reading`: what its reader has done that no event tells yet. */
export function reportOf(run: Run, nowMs: number, reading?: Reading): RunFacts {
  const { totals } = run
  const elapsedMs = Math.max(0, (run.status === 'finished' ? run.nowMs : nowMs) - run.startedAtMs)
  return {
    state: viewedState(run),
    reason: run.reason,
    counts: countsOf(run),
    outcomes: { ...totals.outcomes },
    flags: { ...totals.flags } as Record<string, number>,
    elapsedMs,
    perSecond: elapsedMs === 0 ? 0 : (totals.ended * 1_000) / elapsedMs,
    limiting: limitingFactor(run),
    saturation: saturationOf(run, nowMs, reading),
    rewardMean: totals.rewardCount === 0 ? null : totals.rewardSum / totals.rewardCount,
    cost: totals.cost && { ...totals.cost },
    attempts: totals.attempts,
    retries: totals.retries,
    causes: topCauses(totals.causes),
    phases: Object.fromEntries(
      PHASES.map((phase) => {
        const sketch = totals.phases[phase]
        const [p50Ms, p95Ms, p99Ms] = [0.5, 0.95, 0.99].map((q) => quantileMs(sketch, q))
        return [phase, { count: sketch.count, p50Ms, p95Ms, p99Ms }]
      }),
    ) as RunReport['phases'],
    ...(run.policy.group ? { groups: groupsOf(run) } : {}),
    ...(run.policy.hedge
      ? { hedges: { started: totals.hedges.started, won: totals.hedges.won } }
      : {}),
    policyVersion: run.policyVersion,
  }
}

function groupsOf(run: Run): NonNullable<RunReport['groups']> {
  const { reasons, members, memberMs, stragglers, stragglerMs } = run.totals.groups
  const { size = 0, cut = 0, rest = 0, unreachable = 0, dropped = 0, cancelled = 0 } = reasons
  const complete = size + cut + rest
  const failed = unreachable + dropped + cancelled
  return {
    open: run.nextGroup - complete - failed,
    complete,
    failed,
    reasons: { ...reasons },
    stragglers: {
      episodes: stragglers,
      share: members === 0 ? 0 : stragglers / members,
      timeShare: memberMs === 0 ? 0 : stragglerMs / memberMs,
    },
  }
}

/** The state in the protocol's words: a run with nothing to do and more to come is `open`. */
export function viewedState(run: Run): RunView['state'] {
  const idle = run.live.size === 0 && !run.closed
  return idle && (run.status === 'running' || run.status === 'waiting') ? 'open' : run.status
}

function countsOf(run: Run): RunView['counts'] {
  const { counts, slots } = run.index
  const grading = counts.grade_ready + counts.grade_offered + counts.grading
  return {
    tasks: run.totals.tasks,
    queued: counts.queued + counts.backoff,
    running: slots.size - grading,
    grading,
    done: run.totals.ended,
  }
}
