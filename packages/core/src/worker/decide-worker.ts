import { giveUpAttempt } from '../episode/give-up.ts'
import { CORE_LIMITS } from '../limits.ts'
import { addressOf, type Decision, emit, ignore } from '../run/decision.ts'
import type { InputOf } from '../run/input.ts'
import type { Worker } from '../run/run.ts'
import { dropLease } from './drop-lease.ts'

export function decideAttached(decision: Decision, input: InputOf<'worker_attached'>): void {
  const { run } = decision
  const { worker, slots } = input
  const known = run.workers.get(worker)
  emit(decision, { type: 'worker_attached', worker, slots: Math.max(1, Math.floor(slots)) })
  if (known) dropUnheld(decision, known, new Set(input.held))
  if (run.status === 'waiting') {
    emit(decision, { type: 'status_changed', status: 'running', reason: null })
  }
}

export function decideDetached(decision: Decision, input: InputOf<'worker_detached'>): void {
  const worker = decision.run.workers.get(input.worker)
  if (!worker) {
    ignore(decision, 'the worker is not known')
    return
  }
  if (worker.detachedAtMs !== null) {
    ignore(decision, 'the worker was detached already')
    return
  }
  emit(decision, { type: 'worker_detached', worker: worker.name })
}

/** Recorded only when it is about time, or when there is lag to account for. */
export function decideRenewed(decision: Decision, input: InputOf<'worker_renewed'>): void {
  const { run, nowMs } = decision
  const worker = run.workers.get(input.worker)
  if (!worker) {
    ignore(decision, 'the worker is not known: it has to attach')
    return
  }
  const lagMs = Number.isFinite(input.lagMs) ? Math.max(0, input.lagMs ?? 0) : 0
  const lags = lagMs >= CORE_LIMITS.lagRecordedMs
  if (!lags && nowMs - worker.renewedAtMs < CORE_LIMITS.renewEveryMs) return
  emit(decision, { type: 'worker_renewed', worker: worker.name, lagMs: lags ? lagMs : 0 })
}

export function decideLostWorker(decision: Decision, input: InputOf<'worker_lost'>): void {
  const worker = decision.run.workers.get(input.worker)
  if (!worker) {
    ignore(decision, 'the worker is not known')
    return
  }
  loseWorker(decision, worker, input)
}

/** Ends every lease of the worker, then the worker; with the last one go the idle sandboxes. */
export function loseWorker(
  decision: Decision,
  worker: Worker,
  loss: { readonly cause: string; readonly died: boolean },
): void {
  const { run } = decision
  const { cause, died } = loss
  // The worker first, so that none of its own leases is offered to it again.
  const leases = [...worker.leases]
  emit(decision, { type: 'worker_detached', worker: worker.name })
  for (const episode of leases) {
    // The end of one attempt may be that of another of the same episode.
    if (!worker.leases.has(episode)) continue
    const taken = episode.phase !== 'offered' && episode.phase !== 'grade_offered'
    dropLease(decision, episode, { cause, counts: died && taken })
  }
  emit(decision, { type: 'worker_lost', worker: worker.name, cause })
  if (run.workers.size === 0) waitForWorkers(decision)
}

/** Leases that a worker no longer has, by its own word when it came back. */
function dropUnheld(decision: Decision, worker: Worker, held: ReadonlySet<number>): void {
  for (const episode of [...worker.leases]) {
    const token = episode.current?.token ?? 0
    if (held.has(token) || !worker.leases.has(episode)) continue
    if (episode.phase === 'offered' || episode.phase === 'grade_offered') {
      emit(decision, { type: 'lease_returned', ...addressOf(episode) })
    } else {
      dropLease(decision, episode, { cause: 'the worker came back without it', counts: true })
    }
  }
}

/** Nobody is there to run what was prepared: sandboxes are given back until somebody comes. */
function waitForWorkers(decision: Decision): void {
  const { run } = decision
  if (run.status === 'running') {
    emit(decision, { type: 'status_changed', status: 'waiting', reason: 'no worker is left' })
  }
  for (const episode of [...run.index.slots]) {
    if (episode.phase !== 'grading') giveUpAttempt(decision, episode, 'no worker is left')
  }
}
