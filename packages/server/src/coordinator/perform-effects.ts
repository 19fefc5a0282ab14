import { type Effect, episodeId, isCurrent, type LeaseOffer } from '@sandlot/core'
import type { Grading } from './grading.ts'
import { leaseId } from './ids.ts'
import type { ResultLog, SequencedResult } from './result-log.ts'
import type { RunActor } from './run-actor.ts'
import type { Sandboxes } from './sandboxes.ts'
import type { TaskStore } from './task-store.ts'
import { leaseOf, type WorkerStreams } from './worker-streams.ts'

interface Performers {
  readonly actor: RunActor
  readonly workers: WorkerStreams
  readonly results: ResultLog
  readonly tasks: TaskStore
  readonly sandboxes: Sandboxes
  readonly grading: Grading
  over(): void
  failed(error: unknown): void
}

/** What is done for each effect, once its events are durable. */
export function performer(performers: Performers): (effects: readonly Effect[]) => void {
  const { workers, results, sandboxes, grading, over, failed } = performers

  function performOne(effect: Effect, recorded: SequencedResult[]) {
    switch (effect.type) {
      case 'acquire_sandbox':
        return sandboxes.acquire(effect)
      case 'run_setup':
        return sandboxes.runSetup(effect)
      case 'release_sandbox':
        return sandboxes.release(effect)
      case 'start_grade':
        return grading.start(effect)
      case 'cancel_grade':
        return grading.cancel(effect)
      case 'offer_lease':
        return void offerLease(performers, effect).catch(failed)
      case 'cancel_worker':
        return workers.revoke(effect.worker, leaseId(effect), effect.cause)
      case 'append_result':
      case 'append_group':
        return void recorded.push(effect)
      case 'status_changed':
        return effect.status === 'finished' ? over() : undefined
    }
  }

  return (effects) => {
    const recorded: SequencedResult[] = []
    for (const effect of effects) performOne(effect, recorded)
    results.append(recorded)
  }
}

/** Gives the worker its lease, unless the offer was taken back meanwhile. A worker without a connection is offered it anew later. */
async function offerLease(performers: Performers, offer: LeaseOffer): Promise<void> {
  const { actor, workers, tasks, grading } = performers
  if (!isCurrent(actor.run, offer)) return
  const loaded = tasks.load(offer)
  const task = loaded instanceof Promise ? await loaded : loaded
  if (offer.phase === 'grade' && !(await grading.openFor(offer))) return
  if (!isCurrent(actor.run, offer) || !workers.isAttached(offer.worker)) return
  workers.send(
    offer.worker,
    leaseOf(offer, task, {
      episode: episodeId(actor.run.policy.run, offer.episode),
      world: offer.phase === 'grade' ? grading.world : 'main',
    }),
  )
}
