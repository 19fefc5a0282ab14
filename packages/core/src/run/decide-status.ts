import { endAttempt } from '../episode/decide-end.ts'
import { giveUpAttempt } from '../episode/give-up.ts'
import { settle } from '../episode/settle.ts'
import { stopStale } from '../group/decide-groups.ts'
import { groupsEnded, groupsRead } from './admission.ts'
import { type Decision, emit, ignore } from './decision.ts'
import { openEffects } from './effects.ts'
import type { InputOf } from './input.ts'

/** Ends all that is live at once; what waits in the queue follows in bounded steps. */
export function decideCancel(decision: Decision, input: InputOf<'cancel'>): void {
  const { run } = decision
  if (run.status === 'cancelling' || run.status === 'finished') {
    ignore(decision, `the run is ${run.status}`)
    return
  }
  const { cause } = input
  emit(decision, { type: 'status_changed', status: 'cancelling', reason: cause })
  for (const episode of [...run.index.slots]) {
    if (episode.phase === 'releasing') continue
    const ending = settle(run, episode, { outcome: 'cancelled_user', cause: [cause] })
    endAttempt(decision, episode, { ending, revoke: cause })
  }
}

export function decidePause(decision: Decision, input: InputOf<'pause'>): void {
  const { status } = decision.run
  if (status !== 'running' && status !== 'waiting') ignore(decision, `the run is ${status}`)
  else emit(decision, { type: 'status_changed', status: 'paused', reason: input.cause })
}

export function decideResume(decision: Decision): void {
  const { run } = decision
  if (run.status !== 'paused') ignore(decision, `the run is ${run.status}`)
  else if (run.workers.size > 0) {
    emit(decision, { type: 'status_changed', status: 'running', reason: null })
  } else {
    emit(decision, { type: 'status_changed', status: 'waiting', reason: 'no worker is there' })
  }
}

export function decideGiveUp(decision: Decision, { cause }: InputOf<'give_up'>): void {
  for (const episode of [...decision.run.index.slots]) {
    giveUpAttempt(decision, episode, cause)
  }
}

export function decideCapacity(decision: Decision, input: InputOf<'node_capacity'>): void {
  const { node } = input
  const sandboxes = Math.max(0, Math.floor(input.sandboxes))
  const creating = Math.max(0, Math.floor(input.creating))
  const known = decision.run.nodes.get(node)
  if (known?.sandboxes === sandboxes && known.creating === creating) return
  emit(decision, { type: 'capacity_set', node, sandboxes, creating })
}

export function decideVersion(decision: Decision, input: InputOf<'policy_version_set'>): void {
  if (input.version === decision.run.policyVersion) return
  emit(decision, { type: 'policy_version_set', version: input.version })
  stopStale(decision)
}

export function decideRecorded(decision: Decision, input: InputOf<'results_recorded'>): void {
  const { run } = decision
  const [first] = run.unrecorded.keys()
  if (first === undefined || first > input.through) {
    ignore(decision, 'these rows were recorded already')
    return
  }
  const through = Math.min(input.through, run.nextSeq - 1)
  emit(decision, { type: 'results_recorded', through })
}

export function decideRead(decision: Decision, { rows }: InputOf<'results_read'>): void {
  const { run } = decision
  const known = Math.min(Math.floor(rows), run.totals.ended)
  if (known > run.rowsRead) emit(decision, { type: 'results_read', rows: known })
  else ignore(decision, 'a reader was further already')
}

export function decideGroupsRead(decision: Decision, { groups }: InputOf<'groups_read'>): void {
  const { run } = decision
  const known = Math.min(Math.floor(groups), groupsEnded(run))
  if (run.policy.ahead !== null && known > groupsRead(run)) {
    emit(decision, { type: 'groups_read', groups: known })
  } else ignore(decision, 'a reader was further already')
}

/** Told for the report alone. */
export function decideReading(decision: Decision, input: InputOf<'reading'>): void {
  const { read, waitedMs, busyMs, taken, pages } = input
  if (decision.run.status === 'finished') ignore(decision, 'the run is over')
  else emit(decision, { type: 'reading', read, waitedMs, busyMs, taken, pages })
}

/** Asks again for everything whose answer has not come. */
export function decideRecovered(decision: Decision, input: InputOf<'recovered'>): void {
  const { run, nowMs, step } = decision
  emit(decision, { type: 'recovered', downMs: nowMs - run.nowMs })
  const [first] = run.unrecorded.keys()
  if (first !== undefined && first <= input.recordedThrough) {
    emit(decision, { type: 'results_recorded', through: input.recordedThrough })
  }
  openEffects(run, step.effects)
}
