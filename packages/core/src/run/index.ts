import { indexEpisode } from '../episode/move.ts'
import { EPISODE_PHASES, type EpisodePhase } from '../episode/phase.ts'
import type { Group } from '../group/group.ts'
import { everyone } from '../hedge/hedge.ts'
import { createHeap, type Heap } from '../order/heap.ts'
import type { Episode, Run, RunIndex, Worker } from './run.ts'

export function emptyIndex(): RunIndex {
  return {
    counts: Object.fromEntries(EPISODE_PHASES.map((phase) => [phase, 0])) as Record<
      EpisodePhase,
      number
    >,
    slots: new Set(),
    queued: orderHeap(isAdmittedBefore),
    ready: orderHeap(isEarlier),
    gradeReady: orderHeap(isEarlier),
    backoff: new Set(),
    straggling: { create: stragglers(), setup: stragglers(), agent: stragglers() },
    hedgeAfter: {},
    due: createHeap<Episode>({
      before: (a, b) => {
        const left = a.dueMs ?? 0
        const right = b.dueMs ?? 0
        return left === right ? isEarlier(a, b) : left < right
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
    touched: new Set(),
    cuts: createHeap<Group>({
      before: (a, b) => {
        const left = a.armedAtMs ?? 0
        const right = b.armedAtMs ?? 0
        return left === right ? a.order < b.order : left < right
      },
      place: (group) => group.cutAt,
      setPlace: (group, place) => {
        group.cutAt = place
      },
    }),
    cutAfter: null,
  }
}

/** Fills the empty index of a run from the rest of it. */
export function fillIndex(run: Run): void {
  for (const hedge of run.hedges.values()) {
    const { attempts, spent } = run.live.get(hedge.index) ?? hedge
    Object.assign(hedge, { attempts, spent })
  }
  for (const episode of everyone(run)) {
    episode.peers = run.groups.get(episode.group ?? '') ?? null
    if (!episode.isHedge) episode.peers?.live.add(episode)
    indexEpisode(run, episode)
    const worker = episode.current?.worker
    if (worker) run.workers.get(worker)?.leases.add(episode)
  }
  for (const worker of run.workers.values()) {
    run.index.workersDue.push(worker)
    updateFree(run, worker)
  }
  for (const group of run.groups.values()) {
    run.index.touched.add(group)
    const waits = group.state === 'open' && group.armedAtMs !== null && !group.cut
    if (waits && run.policy.group?.cut) run.index.cuts.push(group)
  }
}

/** Puts the worker at the end of those that can be offered a lease, or takes it from them. */
export function updateFree(run: Run, worker: Worker): void {
  run.index.free.delete(worker)
  if (worker.detachedAtMs === null && worker.leases.size < worker.slots) run.index.free.add(worker)
}

/**
 * Groups that have begun before all others, in their order, so that none waits for its last members while others begin; then the
 * longest expected.
 */
export function isAdmittedBefore(a: Episode, b: Episode): boolean {
  const left = orderOf(a)
  const right = orderOf(b)
  if (left !== right) return left < right
  return a.expectedMs === b.expectedMs ? a.index < b.index : a.expectedMs > b.expectedMs
}

/** A total order, also of two attempts of one episode. */
function isEarlier(a: Episode, b: Episode): boolean {
  return a.index === b.index ? a.attempt < b.attempt : a.index < b.index
}

function stragglers(): Heap<Episode> {
  return createHeap({
    before: (a, b) => (a.sinceMs === b.sinceMs ? isEarlier(a, b) : a.sinceMs < b.sinceMs),
    place: (episode) => episode.straggleAt,
    setPlace: (episode, place) => {
      episode.straggleAt = place
    },
  })
}

function orderOf({ peers }: Episode): number {
  return peers === null || peers.startedAtMs === null ? Number.POSITIVE_INFINITY : peers.order
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
