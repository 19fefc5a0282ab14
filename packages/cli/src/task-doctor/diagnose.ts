/** From trials to what is wrong with a task. */
import { formatDuration } from '@sandlot/protocol'
import { percentilesOf } from '../demo/summary.ts'
import { suggestTimeoutMs } from './suggest-timeout.ts'
import type { Trial, TrialRole } from './trial.ts'

/**
 * The worst first.
 * - `broken`: its own gold solution does not solve it, or its grader gives no verdict where nothing was done.
 * - `flaky`: the same trial ends now so, now otherwise.
 * - `free`: doing nothing solves it.
 * - `undecided`: trials without a verdict, by no doing of the task's.
 * - `tight`: gold needs most of the time that there is.
 * - `unproven`: it has no gold solution.
 */
export const CONDITIONS = ['broken', 'flaky', 'free', 'undecided', 'tight', 'unproven'] as const
export type Condition = (typeof CONDITIONS)[number]

export interface Finding {
  readonly condition: Condition
  readonly why: string
}

export interface TaskTrials {
  readonly key: string
  readonly trials: readonly Trial[]
  /** That the agent has now. */
  readonly timeoutMs: number
}

/** How often a role was tried, and how often it solved the task. */
export interface Tally {
  readonly trials: number
  readonly passes: number
}

export interface Diagnosis extends Record<TrialRole, Tally> {
  readonly key: string
  /** The worst first; empty where nothing is to be said. */
  readonly findings: readonly Finding[]
  /** What gold needs, by the trials that solved the task. */
  readonly goldP95Ms: number | null
  readonly timeoutMs: number
  readonly suggestedTimeoutMs: number | null
}

/** Of its time gold should not need more. */
const TIGHT_SHARE = 0.5

export function diagnose({ key, trials, timeoutMs }: TaskTrials): Diagnosis {
  const [gold, none] = [roleOf(trials, 'gold'), roleOf(trials, 'null')]
  const solved = gold.passes.map(({ agentMs }) => agentMs)
  const goldP95Ms = solved.length === 0 ? null : percentilesOf(solved).p95Ms
  const findings = [
    ...goldFindings(gold),
    ...nullFindings(none),
    ...undecidedFindings([...gold.nothing, ...none.nothing], trials.length),
    ...tightFindings(goldP95Ms, timeoutMs),
  ]
  return {
    key,
    findings: findings.sort((a, b) => rank(a) - rank(b)),
    gold: tallyOf(gold),
    null: tallyOf(none),
    goldP95Ms,
    timeoutMs,
    suggestedTimeoutMs: goldP95Ms === null ? null : suggestTimeoutMs(goldP95Ms),
  }
}

/** Whether an episode of such a task says nothing of who did it. */
export function isUnfit({ findings }: Diagnosis): boolean {
  return findings.some(({ condition }) => ['broken', 'flaky', 'free'].includes(condition))
}

/** Nothing speaks against it, as far as it could be told. */
export function isSound({ findings }: Diagnosis): boolean {
  return findings.every(({ condition }) => condition === 'tight' || condition === 'unproven')
}

interface Role {
  readonly all: readonly Trial[]
  readonly passes: readonly Trial[]
  readonly fails: readonly Trial[]
  readonly faults: readonly Trial[]
  readonly nothing: readonly Trial[]
}

function roleOf(trials: readonly Trial[], role: TrialRole): Role {
  const all = trials.filter((trial) => trial.role === role)
  const of = (verdict: Trial['verdict']) => all.filter((trial) => trial.verdict === verdict)
  return { all, passes: of('pass'), fails: of('fail'), faults: of('fault'), nothing: of('nothing') }
}

function goldFindings({ all, passes, fails, faults }: Role): Finding[] {
  if (all.length === 0) return [{ condition: 'unproven', why: 'there is no gold solution to try' }]
  const bad = [...faults, ...fails]
  if (bad.length === 0) return []
  const decided = passes.length + bad.length
  if (passes.length === 0) return [{ condition: 'broken', why: `gold: ${most(bad)}` }]
  return [
    {
      condition: 'flaky',
      why: `gold solves it in ${passes.length} of ${decided} trials; else ${most(bad)}`,
    },
  ]
}

function nullFindings({ passes, fails, faults }: Role): Finding[] {
  const decided = passes.length + fails.length + faults.length
  const findings: Finding[] = []
  if (faults.length > 0) {
    const condition = faults.length === decided ? 'broken' : 'flaky'
    findings.push({ condition, why: `no verdict where nothing was done: ${most(faults)}` })
  }
  if (passes.length > 0 && fails.length > 0) {
    findings.push({
      condition: 'flaky',
      why: `doing nothing solves it in ${passes.length} of ${decided} trials`,
    })
  } else if (passes.length > 0) {
    findings.push({ condition: 'free', why: `doing nothing solves it: ${most(passes)}` })
  }
  return findings
}

function undecidedFindings(nothing: readonly Trial[], all: number): Finding[] {
  if (nothing.length === 0) return []
  return [
    {
      condition: 'undecided',
      why: `${nothing.length} of ${all} trials say nothing: ${most(nothing)}`,
    },
  ]
}

function tightFindings(goldP95Ms: number | null, timeoutMs: number): Finding[] {
  if (goldP95Ms === null || goldP95Ms <= timeoutMs * TIGHT_SHARE) return []
  const [needed, given] = [formatDuration(goldP95Ms), formatDuration(timeoutMs)]
  return [{ condition: 'tight', why: `gold needs ${needed} of ${given}` }]
}

/** What most of them came to. */
function most(trials: readonly Trial[]): string {
  const counts = new Map<string, number>()
  for (const { what } of trials) counts.set(what, (counts.get(what) ?? 0) + 1)
  const [[first = ''] = []] = [...counts].sort(([, a], [, b]) => b - a)
  return first
}

function tallyOf({ all, passes }: Role): Tally {
  return { trials: all.length, passes: passes.length }
}

function rank({ condition }: Finding): number {
  return CONDITIONS.indexOf(condition)
}
