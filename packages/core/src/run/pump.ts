import { expire } from '../episode/expire.ts'
import { expireCuts } from '../group/cut.ts'
import { decideGroups } from '../group/decide-groups.ts'
import { decideHedges } from '../hedge/decide-hedges.ts'
import { CORE_LIMITS } from '../limits.ts'
import { loseWorker } from '../worker/decide-worker.ts'
import { canAdmit } from './admission.ts'
import { addressOf, type Decision, emit } from './decision.ts'
import { reasonToPause } from './failures.ts'
import type { Run } from './run.ts'

/** Everything that is due by now, in bounded numbers. */
export function expireDue(decision: Decision): void {
  const { run, nowMs } = decision
  const { due, workersDue } = run.index
  let left: number = CORE_LIMITS.decisionsPerStep
  for (
    let worker = workersDue.peek();
    worker && worker.dueMs <= nowMs;
    worker = workersDue.peek()
  ) {
    const cause = 'the worker was not heard any more'
    loseWorker(decision, worker, { cause, died: true })
    if (--left === 0) return
  }
  for (let next = due.peek(); next && (next.dueMs ?? 0) <= nowMs; next = due.peek()) {
    expire(decision, next)
    if (--left === 0) return
  }
  expireCuts(decision)
}

/** What follows from the state alone, whatever the input was. */
export function pump(decision: Decision): void {
  pauseOnFailures(decision)
  cancelQueued(decision)
  decideGroups(decision)
  offerLeases(decision)
  decideHedges(decision)
  admit(decision)
  finish(decision)
}

/** Whether the next step has something to do that no input has to ask for. */
export function hasWork(run: Run): boolean {
  const { queued, backoff, ready, gradeReady, free, touched } = run.index
  if (touched.size > 0) return true
  if (run.status === 'cancelling') return queued.size + backoff.size > 0
  return canAdmit(run) || (free.size > 0 && ready.size + gradeReady.size > 0)
}

function pauseOnFailures(decision: Decision): void {
  const { run } = decision
  if (run.status !== 'running' && run.status !== 'waiting') return
  const reason = reasonToPause(run.failures, run.totals.causes)
  if (reason) emit(decision, { type: 'status_changed', status: 'paused', reason })
}

function cancelQueued(decision: Decision): void {
  const { run } = decision
  if (run.status !== 'cancelling') return
  const { queued, backoff } = run.index
  const cause = run.reason ?? 'the run was cancelled'
  let left: number = CORE_LIMITS.decisionsPerStep
  for (let next = queued.peek(); next && left-- > 0; next = queued.peek()) {
    emit(decision, { type: 'episode_cancelled', episode: next.index, cause })
  }
  for (const next of [...backoff]) {
    if (left-- <= 0) return
    emit(decision, { type: 'episode_cancelled', episode: next.index, cause })
  }
}

/** Grades first: they hold a sandbox that has done its work. */
function offerLeases(decision: Decision): void {
  const { run } = decision
  const { ready, gradeReady, free } = run.index
  let left: number = CORE_LIMITS.decisionsPerStep
  while (left-- > 0) {
    const episode = gradeReady.peek() ?? ready.peek()
    if (!episode) return
    const [worker] = free
    if (!worker) return
    const token = run.nextToken
    emit(decision, { type: 'leased', ...addressOf(episode), worker: worker.name, token })
  }
}

function admit(decision: Decision): void {
  const { run } = decision
  // A member of a group that is about to end is not begun any more.
  if (run.index.touched.size > 0) return
  let left: number = CORE_LIMITS.decisionsPerStep
  while (left-- > 0 && canAdmit(run)) {
    const episode = run.index.queued.peek()
    if (!episode) return
    emit(decision, { type: 'admitted', episode: episode.index, attempt: episode.made + 1 })
  }
}

function finish(decision: Decision): void {
  const { run } = decision
  const over =
    run.closed && run.live.size === 0 && run.hedges.size === 0 && run.unrecorded.size === 0
  if (!over || run.status === 'finished') return
  // Why it was paused, or waited, is over with it.
  const reason = run.status === 'cancelling' ? run.reason : null
  emit(decision, { type: 'status_changed', status: 'finished', reason })
}
