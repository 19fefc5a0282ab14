import type { FoundRun } from './find-run.ts'
import type { WorkerRequest, WorkerStream, WorkerWire } from './port.ts'
import { runsItself } from './refusals.ts'
import { runsByItself } from './specification.ts'
import { OVER } from './worker-streams.ts'

/** A process comes to work on a run. Refused where the daemon runs its episodes. */
export function attachWorker(
  { live, record }: FoundRun,
  worker: {
    readonly request: WorkerRequest
    readonly wire: WorkerWire
    readonly draining: boolean
  },
): WorkerStream {
  const { request, wire, draining } = worker
  if (live === undefined) return OVER
  if (runsByItself(record.specification)) throw runsItself(request.run)
  const stream = live.workers.attach(request, wire)
  if (draining) wire.send({ kind: 'draining' })
  return stream
}
