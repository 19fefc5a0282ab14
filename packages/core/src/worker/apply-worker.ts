import { CORE_LIMITS } from '../limits.ts'
import type { EventOf, Sink } from '../run/event.ts'
import { updateFree } from '../run/index.ts'
import type { Run, Worker } from '../run/run.ts'

export function applyWorkerAttached(run: Run, event: EventOf<'worker_attached'>): void {
  const { atMs } = event
  const worker = run.workers.get(event.worker) ?? newWorker(event.worker, atMs)
  if (worker.detachedAtMs !== null) worker.lagMs += Math.max(0, atMs - worker.detachedAtMs)
  worker.detachedAtMs = null
  worker.slots = event.slots
  worker.renewedAtMs = atMs
  run.workers.set(event.worker, worker)
  setDue(run, worker, atMs + CORE_LIMITS.leaseMs)
  updateFree(run, worker)
}

export function applyWorkerDetached(run: Run, event: EventOf<'worker_detached'>): void {
  detachWorker(run, workerOf(run, event.worker), event.atMs, CORE_LIMITS.reconnectMs)
}

/** From now on its connection is gone, and what that takes is not its leases' time. */
export function detachWorker(run: Run, worker: Worker, atMs: number, graceMs: number): void {
  worker.detachedAtMs = atMs
  worker.graceMs = graceMs
  setDue(run, worker, atMs + graceMs)
  updateFree(run, worker)
}

export function applyWorkerRenewed(run: Run, event: EventOf<'worker_renewed'>): void {
  const worker = workerOf(run, event.worker)
  worker.renewedAtMs = event.atMs
  worker.lagMs += event.lagMs
  setDue(run, worker, event.atMs + CORE_LIMITS.leaseMs)
}

export function applyWorkerLagged(run: Run, event: EventOf<'worker_lagged'>): void {
  const worker = workerOf(run, event.worker)
  worker.lagMs += event.lagMs
  worker.detachedAtMs = event.atMs
}

export function applyWorkerLost(run: Run, event: EventOf<'worker_lost'>, effects: Sink): void {
  const worker = workerOf(run, event.worker)
  run.workers.delete(event.worker)
  run.index.workersDue.remove(worker)
  run.index.free.delete(worker)
  effects?.push({ type: 'drop_worker', worker: worker.name, cause: event.cause })
}

function workerOf(run: Run, name: string): Worker {
  const worker = run.workers.get(name)
  if (!worker) throw new Error(`the log speaks of the worker ${name}, which is not there`)
  return worker
}

function setDue(run: Run, worker: Worker, dueMs: number): void {
  run.index.workersDue.remove(worker)
  worker.dueMs = dueMs
  run.index.workersDue.push(worker)
}

function newWorker(name: string, atMs: number): Worker {
  return {
    name,
    slots: 0,
    leases: new Set(),
    detachedAtMs: null,
    graceMs: CORE_LIMITS.leaseMs,
    renewedAtMs: atMs,
    lagMs: 0,
    dueMs: atMs,
    dueAt: -1,
  }
}
