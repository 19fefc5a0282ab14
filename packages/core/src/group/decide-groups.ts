import { endAttempt } from '../episode/decide-end.ts'
import { settle } from '../episode/settle.ts'
import { CORE_LIMITS } from '../limits.ts'
import { type Decision, emit } from '../run/decision.ts'
import type { EventOf } from '../run/event.ts'
import type { Episode, Run } from '../run/run.ts'
import { type Group, isStale, missing, ruleOf } from './group.ts'

/** Ends what of the groups that changed is to end, and of those that ended what is still live. */
export function decideGroups(decision: Decision): void {
  const { run } = decision
  const { touched } = run.index
  let left: number = CORE_LIMITS.decisionsPerStep
  for (const group of touched) {
    if (left-- <= 0) return
    touched.delete(group)
    const end = group.state === 'open' ? endOf(run, group) : null
    if (end) emit(decision, { type: 'group_ended', group: group.name, ...end })
    // Where the whole run is cancelled, the members are as well.
    if (group.state !== 'open' && run.status !== 'cancelling') stopRest(decision, group)
  }
}

/** Attempts whose policy is too old by now are no samples any more. */
export function stopStale(decision: Decision): void {
  const { run } = decision
  if ((run.policy.group?.maxLag ?? null) === null) return
  for (const episode of [...run.index.slots]) {
    const version = episode.current?.policyVersion ?? run.policyVersion
    if (BEFORE_AGENT.has(episode.phase) || !isStale(run, version)) continue
    const cause = `it began with version ${version} of the policy, which is ${run.policyVersion} by now`
    stop(decision, episode, 'cancelled_stale', cause)
  }
}

type GroupEnd = Pick<EventOf<'group_ended'>, 'state' | 'reason' | 'error'>

function endOf(run: Run, group: Group): GroupEnd | null {
  const { size, need } = ruleOf(run)
  const valid = group.counted.length
  if (run.status === 'cancelling') return failed('cancelled', run.reason ?? 'the run was cancelled')
  if (group.droppedBy !== null) return failed('dropped', droppedBy(group))
  if (valid >= size) return complete('size')
  if (group.cut && valid >= need) return complete('cut')
  const coming = group.live.size + missing(run, group)
  if (valid + coming < need) return failed('unreachable', unreachable(group, valid + coming, need))
  return coming === 0 ? complete('rest') : null
}

function complete(reason: GroupEnd['reason']): GroupEnd {
  return { state: 'complete', reason, error: null }
}

function failed(reason: GroupEnd['reason'], error: string): GroupEnd {
  return { state: 'failed', reason, error }
}

function droppedBy({ droppedBy: key }: Group): string {
  return `the policy drop-group met ${JSON.stringify(key)}`
}

function unreachable(group: Group, most: number, need: number): string {
  const ends = Object.entries(group.outcomes).map(([outcome, count]) => `${outcome} ${count}`)
  if (group.stale > 0) ends.push(`too old ${group.stale}`)
  const why = ends.length === 0 ? 'too few tasks were put into it' : ends.join(', ')
  return `at most ${most} of the ${need} results that it needs can come: ${why}`
}

/** Members whose end is decided already end as that is. */
function stopRest(decision: Decision, group: Group): void {
  const cause =
    group.state === 'complete'
      ? `its group is complete with ${group.counted.length} results`
      : 'its group has failed'
  for (const episode of [...group.live]) stop(decision, episode, 'cancelled_quorum', cause)
}

function stop(
  decision: Decision,
  episode: Episode,
  outcome: 'cancelled_quorum' | 'cancelled_stale',
  cause: string,
): void {
  if (episode.phase === 'releasing') return
  const ending = settle(decision.run, episode, { outcome, cause: [cause] })
  if (ending.next === 'retry') throw new Error(`${outcome} is not tried again`)
  if (episode.phase === 'queued' || episode.phase === 'backoff') {
    emit(decision, { type: 'episode_cancelled', episode: episode.index, cause, ending })
  } else {
    endAttempt(decision, episode, { ending, revoke: cause })
  }
}

/** Phases in which the policy has done nothing yet. */
const BEFORE_AGENT: ReadonlySet<Episode['phase']> = new Set([
  'creating',
  'setup',
  'ready',
  'releasing',
])
