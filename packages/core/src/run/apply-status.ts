import { IllegalMove } from '../episode/move.ts'
import { closeGroups } from '../group/apply-group.ts'
import { CORE_LIMITS } from '../limits.ts'
import { detachWorker } from '../worker/apply-worker.ts'
import type { EventOf, Sink } from './event.ts'
import { forgive } from './failures.ts'
import { moveOwnClock } from './own-clock.ts'
import type { Run } from './run.ts'
import { RUN_MOVES, type RunStatus } from './status.ts'

export function applyStatus(run: Run, event: EventOf<'status_changed'>, effects: Sink): void {
  const { status, reason } = event
  if (run.status === 'paused') forgive(run.failures)
  moveRun(run, status)
  moveOwnClock(run, status === 'running', event.atMs)
  run.reason = reason
  if (status === 'cancelling') {
    run.closed = true
    closeGroups(run, event.atMs)
  }
  effects?.push({ type: 'status_changed', status, reason })
}

/**
 * No connection outlived the coordinator, which says nothing of the workers: each has a lease's life to come back. One whose connection
 * was gone before has no longer than it had then.
 */
export function applyRecovered(run: Run, event: EventOf<'recovered'>): void {
  run.downMs += event.downMs
  if (run.stoodSinceMs === null) run.stoodMs += event.downMs
  const goneAtMs = event.atMs - event.downMs
  for (const worker of run.workers.values()) {
    if (worker.detachedAtMs !== null) worker.lagMs += Math.max(0, goneAtMs - worker.detachedAtMs)
    const graceMs = worker.detachedAtMs === null ? CORE_LIMITS.leaseMs : worker.graceMs
    detachWorker(run, worker, event.atMs, graceMs)
  }
}

/** The one place that changes a run's status. */
function moveRun(run: Run, to: RunStatus): void {
  if (!RUN_MOVES[run.status].includes(to)) throw new IllegalMove('the run', run.status, to)
  run.status = to
}
