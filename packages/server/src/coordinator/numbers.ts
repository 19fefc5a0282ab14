import { viewedState } from '@sandlot/core'
import { RUN_STATES, type RunState } from '@sandlot/protocol'
import type { CoordinatorNumbers } from './port.ts'
import type { Registry } from './registry.ts'

export function numbersOf(registry: Registry, done: number): CoordinatorNumbers {
  const runs = Object.fromEntries(RUN_STATES.map((state) => [state, 0])) as Record<RunState, number>
  const episodes = { queued: 0, running: 0, grading: 0, done }
  const sums = { workers: 0, leases: 0, inputsWaiting: 0, batchesInFlight: 0 }
  for (const { actor, workers, journal } of registry.all()) {
    const { run } = actor
    const { counts, slots, queued, backoff } = run.index
    const grading = counts.grade_ready + counts.grade_offered + counts.grading
    runs[viewedState(run)] += 1
    episodes.queued += queued.size + backoff.size
    episodes.grading += grading
    episodes.running += slots.size - grading
    sums.workers += workers.attached
    for (const { leases } of run.workers.values()) sums.leases += leases.size
    sums.inputsWaiting += actor.inputsWaiting
    sums.batchesInFlight += journal.waitingBatches
  }
  return { runs, episodes, ...sums }
}
