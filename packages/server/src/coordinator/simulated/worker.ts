import {
  formatId,
  type Lease,
  type WorkerEventFromServer,
  type WorkerReport,
} from '@sandlot/protocol'
import type { CoordinatorPort, WorkerStream } from '../port.ts'

/** A worker in the same process. It reports what `work` gives; where that is undefined it keeps the lease and says nothing. */
export interface SimulatedWorker {
  readonly id: string
  /** Leases it has and has not settled. */
  readonly held: ReadonlyMap<string, Lease>
  readonly events: readonly WorkerEventFromServer[]
  readonly stream: WorkerStream
  report(lease: Lease, report: WorkerReport): void
  renew(): void
  /** Connects anew under the same id, with what it holds. */
  reconnect(coordinator?: CoordinatorPort): Promise<void>
}

export interface SimulatedWorkerOptions {
  readonly run: string
  readonly number?: number
  readonly slots?: number
  readonly project?: string
  /** Keeps every event for the test to look at. Default true. */
  readonly keepEvents?: boolean
  /** Whether this one never arrives, because the connection breaks first. */
  loses?(lease: Lease): boolean
  work?(lease: Lease): WorkerReport | undefined | Promise<WorkerReport | undefined>
}

export async function startSimulatedWorker(
  coordinator: CoordinatorPort,
  options: SimulatedWorkerOptions,
): Promise<SimulatedWorker> {
  const {
    run,
    number = 1,
    slots = 4,
    project = 'default',
    keepEvents = true,
    work,
    loses,
  } = options
  const id = formatId('worker', new Uint8Array(20).fill(number))
  const held = new Map<string, Lease>()
  const events: WorkerEventFromServer[] = []
  /** Reports that were not answered yet: sent again after a reconnect. */
  const unanswered = new Map<string, { readonly token: number; readonly report: WorkerReport }>()
  let stream: WorkerStream

  function send(lease: string, token: number, report: WorkerReport) {
    const measured = { agentMs: 10, modelMs: 0, lagMs: 0, flags: [] }
    stream.receive({ kind: 'report', lease, token, report, ...measured })
  }

  function report(lease: Lease, found: WorkerReport) {
    unanswered.set(lease.lease, { token: lease.token, report: found })
    send(lease.lease, lease.token, found)
  }

  async function take(lease: Lease) {
    held.set(lease.lease, lease)
    stream.receive({ kind: 'taken', lease: lease.lease, token: lease.token })
    const found = work?.(lease)
    const given = found instanceof Promise ? await found : found
    if (given !== undefined && held.has(lease.lease)) report(lease, given)
  }

  async function connect(to: CoordinatorPort) {
    let open = true
    const leases = [...held.values()].map(({ lease, token }) => ({ lease, token }))
    const wire = {
      send(event: WorkerEventFromServer) {
        if (!open) return
        if (keepEvents) events.push(event)
        if (event.kind === 'lease') {
          if (!loses?.(event.lease)) void take(event.lease)
        } else if (event.kind !== 'draining') {
          held.delete(event.lease)
          unanswered.delete(event.lease)
        }
      },
    }
    const next = await to.attachWorker(project, { run, worker: id, slots, held: leases }, wire)
    stream = next
    next.done
      .catch(() => {})
      .finally(() => {
        open = false
      })
    for (const { lease, token } of leases) stream.receive({ kind: 'taken', lease, token })
    for (const [lease, { token, report: found }] of unanswered) send(lease, token, found)
  }

  await connect(coordinator)
  return {
    ...{ id, held, events, report },
    get stream() {
      return stream
    },
    renew() {
      const leases = [...held.values()].map(({ lease, token }) => ({ lease, token }))
      stream.receive({ kind: 'renew', leases, lagMs: 0 })
    },
    reconnect: (to = coordinator) => connect(to),
  }
}
