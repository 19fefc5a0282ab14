import type { LiveRun } from './live-run.ts'

/** This process stood still for so long: to a run's workers that is lag of the platform. */
export function tellStoodStill({ actor }: LiveRun, forMs: number): void {
  for (const { name, detachedAtMs } of [...actor.run.workers.values()]) {
    // The time of one without a connection is not charged anyway.
    if (detachedAtMs !== null) continue
    actor.post({ type: 'worker_renewed', worker: name, lagMs: forMs })
  }
}
