import { indexEpisode } from '../episode/move.ts'
import { EPISODE_PHASES, type EpisodePhase } from '../episode/phase.ts'
import { createHeap, type Heap } from '../order/heap.ts'
import type { Episode, Run, RunIndex, Worker } from './run.ts'

export function emptyIndex(): RunIndex {
  return {
    counts: Object.fromEntries(EPISODE_PHASES.map((phase) => [phase, 0])) as Record<
      EpisodePhase,
      number
    >,
    slots: new Map(),
    queued: orderHeap((a, b) =>
      a.expectedMs === b.expectedMs ? a.index < b.index : a.expectedMs > b.expectedMs,
    ),
    ready: orderHeap((a, b) => a.index < b.index),
    gradeReady: orderHeap((a, b) => a.index < b.index),
    backoff: new Set(),
    due: createHeap<Episode>({
      before: (a, b) => {
        const left = a.dueMs ?? 0
        const right = b.dueMs ?? 0
        return left === right ? a.index < b.index : left < right
      },
      place: (episode) => episode.dueAt,
      setPlace: (episode, place) => {
        episode.dueAt = place
      },
    }),
    workersDue: createHeap<Worker>({
      before: (a, b) => (a.dueMs === b.dueMs ? a.name < b.name : a.dueMs < b.dueMs),
      place: (worker) => worker.dueAt,
      setPlace: (worker, place) => {
        worker.dueAt = place
      },
    }),
    free: new Set(),
    idleGroups: new Set(),
  }
}

/** Fills the empty index of a run from the rest of it. */
export function fillIndex(run: Run): void {
  for (const episode of run.live.values()) {
    indexEpisode(run.index, episode)
    const worker = episode.current?.worker
    if (worker) run.workers.get(worker)?.leases.add(episode.index)
  }
  for (const worker of run.workers.values()) {
    run.index.workersDue.push(worker)
    updateFree(run, worker)
  }
  for (const group of run.groups.values()) if (group.live === 0) run.index.idleGroups.add(group)
}

/** Puts the worker at the end of those that can be offered a lease, or takes it from them. */
export function updateFree(run: Run, worker: Worker): void {
  run.index.free.delete(worker)
  if (worker.detachedAtMs === null && worker.leases.size < worker.slots) run.index.free.add(worker)
}

function orderHeap(before: (a: Episode, b: Episode) => boolean): Heap<Episode> {
  return createHeap({
    before,
    place: (episode) => episode.orderAt,
    setPlace: (episode, place) => {
      episode.orderAt = place
    },
  })
}
