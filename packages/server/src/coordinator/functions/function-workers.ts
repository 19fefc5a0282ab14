import { Fleet } from '../../functions/fleet.ts'
import { FUNCTION_LIMITS } from '../../functions/limits.ts'
import type { FunctionRecord } from '../../functions/records.ts'
import type { SandboxWork } from '../sandboxes.ts'
import type { WorkerStreams } from '../worker-streams.ts'
import { ContainerWorker } from './container-worker.ts'
import { containersWanted, type FunctionContainers } from './containers-of.ts'
import type { FunctionHost } from './function-host.ts'

/**
 * The workers of a run of a function: containers, as many as its episodes need, each a worker by itself, so that all rules of workers
 * hold. They end with the daemon: what an earlier one left counts as workers that are gone, at nobody's cost.
 */
export interface FunctionWorkers {
  /** Why its containers don't come up. */
  readonly trouble: string | undefined
  /** Ends them; what they work on goes to others. Idempotent. */
  close(): Promise<void>
}

export function openFunctionWorkers(
  work: SandboxWork,
  workers: WorkerStreams,
  host: FunctionHost,
): FunctionWorkers {
  const { record, actor, clock, warn } = work
  const { name, project, specification } = record
  const definition = specification.function as FunctionRecord
  const containers = specification.containers as FunctionContainers
  let closed = false
  let cancelLook = () => {}
  /** Its function can't be loaded, and a person is waited for: the run is asked to pause, then it is paused. */
  let pause: 'none' | 'asked' | 'paused' = 'none'

  /** Those that the fleet does not have yet. */
  const fresh: ContainerWorker[] = []
  const fleet: Fleet<ContainerWorker> = new Fleet<ContainerWorker>({
    ...{ clock, warn, slots: containers.each, idleMs: containers.idleMs },
    changed: () => {
      for (const worker of fresh.splice(0)) worker.start()
    },
    open: async (signal) => {
      const tags = { run: name }
      const request = { project, tags, definition, reachesApi: true, signal }
      const container = await host.source(request)
      const { each } = containers
      const worker = new ContainerWorker({ work, workers, host, fleet, container, each })
      fresh.push(worker)
      return worker
    },
  })

  function look() {
    const { run } = actor
    if (closed || run.status === 'finished') return
    awaitPerson()
    const busy = run.status === 'paused' ? run.index.slots.size : run.live.size
    fleet.want(containersWanted(Math.min(busy, run.policy.concurrency), containers))
    cancelLook = clock.after(FUNCTION_LIMITS.lookMs, look)
  }

  /** No container of it will ever come up; what it starts from may be another when a person resumes the run. */
  function awaitPerson() {
    const { status } = actor.run
    if (pause === 'paused' && status !== 'paused') {
      pause = 'none'
      fleet.tryAgain()
    } else if (pause === 'none' && fleet.isBroken && fleet.ready === 0) {
      pause = 'asked'
      const cause = fleet.failure?.message ?? 'its function can’t be loaded'
      actor.post({ type: 'pause', cause }, () => {
        pause = 'paused'
      })
    }
  }

  for (const worker of actor.run.workers.keys()) {
    const cause = 'its container ended with the daemon'
    actor.post({ type: 'worker_lost', worker, cause, died: false })
  }
  look()
  return {
    get trouble() {
      return fleet.failure?.message
    },
    async close() {
      closed = true
      cancelLook()
      await fleet.close()
    },
  }
}
