import { HEDGE_PHASES, type HedgePhase } from '@sandlot/protocol'
import { OTHER_FIRST } from '../episode/decide-end.ts'
import { hedgePhaseOf, otherInProgress } from '../hedge/hedge.ts'
import { OUTCOME_RULES } from '../outcome/rules.ts'
import type { Step } from '../run/decision.ts'
import type { UnrecordedRow } from '../run/effect.ts'
import type { EventOf, RunEvent } from '../run/event.ts'
import type { RunPolicy } from '../run/policy.ts'
import type { Run } from '../run/run.ts'
import { must } from './invariants.ts'

/** After every step: of two attempts both go on only where neither is further than it may be. */
export function checkHedges(run: Run, step: Step): void {
  const { hedge } = run.policy
  for (const event of step.events) if (event.type === 'attempt_ended') checkFailure(step, event)
  must(run.status !== 'finished' || run.hedges.size === 0, 'over when all is released', () => [
    ...run.hedges.keys(),
  ])
  must(hedge !== null || run.hedges.size === 0, 'no second attempt without a rule for it', () => [
    ...run.hedges.keys(),
  ])
  for (const attempt of run.hedges.values()) {
    const found = () => ({ key: attempt.key, phase: attempt.phase, attempt: attempt.attempt })
    must(attempt.isHedge && !run.live.get(attempt.index)?.isHedge, 'one is the episode’s', found)
    if (attempt.phase === 'releasing') continue
    const other = otherInProgress(run, attempt)
    must(other !== undefined, 'a second attempt is beside one that goes on', found)
    if (hedge?.phases.includes('agent')) continue
    const parts = [attempt, other].map((each) => each && hedgePhaseOf(each.phase))
    must(
      parts.every((part) => part === 'create' || part === 'setup'),
      'one agent works for an episode',
      () => parts,
    )
  }
}

/**
 * An attempt that gave no verdict leaves the episode to the other, unless the episode as a whole is over. (Both may fail in one step, each
 * by itself: a worker that dies may have had both.)
 */
function checkFailure(step: Step, event: EventOf<'attempt_ended'>): void {
  const { ending, episode, attempt } = event
  if (ending.next !== 'final' || ending.valid || OUTCOME_RULES[ending.outcome].valid) return
  if (ending.outcome.startsWith('cancelled_') || ending.outcome === 'task_invalid') return
  const beside = step.events.some(
    (other) =>
      other.type === 'attempt_ended' &&
      other.episode === episode &&
      other.attempt !== attempt &&
      other.ending.cause.includes(OTHER_FIRST),
  )
  must(!beside, 'a failure leaves the episode to the other attempt', () => event)
}

/** When all is over: a second attempt was begun only beside one that took so long, and no attempt counts but one. */
export function checkHedged(
  { hedge }: RunPolicy,
  log: readonly string[],
  rows: readonly UnrecordedRow[],
): void {
  const events = log.map((line) => JSON.parse(line) as RunEvent)
  for (const [at, event] of events.entries()) {
    if (event.type !== 'hedged') continue
    const beganMs = startOf(events.slice(0, at), event.episode, hedge?.phases ?? HEDGE_PHASES)
    const leastMs = typeof hedge?.after === 'number' ? hedge.after : 0
    must(event.atMs - beganMs >= leastMs - 1e-3, 'only what straggles is hedged', () => event)
  }
  for (const row of rows) {
    const own = row.attempts.find(({ attempt }) => attempt === row.attempt)
    const others = row.attempts.filter((attempt) => attempt !== own)
    const isOwn = !row.valid || own?.outcome === row.outcome
    must(isOwn, 'a sample is what its own attempt gave', () => row)
    const alone = others.every(({ outcome }) => outcome !== 'graded')
    must(alone, 'no attempt but one gives a verdict', () => row)
  }
}

/** When the newest attempt of an episode began what it is in. */
function startOf(
  events: readonly RunEvent[],
  episode: number,
  phases: readonly HedgePhase[],
): number {
  const starts = { create: 'admitted', setup: 'sandbox_bound', agent: 'lease_taken' } as const
  const types: readonly string[] = phases.map((phase) => starts[phase])
  return (
    events.findLast(
      (event) => 'episode' in event && event.episode === episode && types.includes(event.type),
    )?.atMs ?? 0
  )
}
