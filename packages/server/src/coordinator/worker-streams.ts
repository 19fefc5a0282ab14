import { type InputBody, isCurrent, type LeaseOffer, type Run } from '@sandlot/core'
import { type Lease, SandlotError, type WorkerEventFromClient } from '@sandlot/protocol'
import { attemptOfLease, leaseId } from './ids.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import type { WorkerRequest, WorkerStream, WorkerWire } from './port.ts'
import type { Answer, RunActor } from './run-actor.ts'
import { boundedReport, invalid } from './worker-report.ts'

/** The workers of one run: their connections, and what is said on them. Who has which lease, core knows. */
export interface WorkerStreams {
  attach(request: WorkerRequest, wire: WorkerWire): WorkerStream
  isAttached(worker: string): boolean
  send(worker: string, lease: Lease): void
  revoke(worker: string, lease: string, cause: string): void
  /** The run is over: every stream's `done` resolves. Or its coordinator lets go of it: `done` rejects, and they come back. */
  end(reason: 'over' | 'gone'): void
  readonly attached: number
}

export interface WorkerStreamsOptions {
  readonly actor: RunActor
  /** Keeps a result's blob for as long as the run; rejects with `blob_unknown`. */
  keepBlob(digest: string): Promise<void>
}

interface Connection {
  readonly wire: WorkerWire
  readonly finish: () => void
  readonly cut: () => void
}

export function openWorkerStreams({ actor, keepBlob }: WorkerStreamsOptions): WorkerStreams {
  const connections = new Map<string, Connection>()

  function attach(request: WorkerRequest, wire: WorkerWire): WorkerStream {
    const { worker, slots } = request
    const { promise: done, resolve: finish, reject } = Promise.withResolvers<void>()
    done.catch(() => {})
    const cut = () => reject(new SandlotError('draining', 'the run is let go of: come back'))
    const connection = { wire, finish, cut }
    connections.get(worker)?.finish()
    connections.set(worker, connection)
    const held = request.held.map(({ token }) => token)
    actor.post({ type: 'worker_attached', worker, slots, held })

    const isCurrent = () => connections.get(worker) === connection
    function detach(input: InputBody) {
      finish()
      if (!isCurrent()) return
      connections.delete(worker)
      actor.post(input)
    }
    return {
      done,
      receive(event) {
        if (!isCurrent()) return
        if (actor.inputsWaiting > COORDINATOR_LIMITS.inputsWaiting) {
          // It says more than can be decided on: it may come back, and keeps its leases meanwhile.
          detach({ type: 'worker_detached', worker })
        } else receive({ worker, wire, cut: () => drop(worker, connection) }, event)
      },
      lost: () => detach({ type: 'worker_detached', worker }),
      left: () => detach({ type: 'worker_lost', worker, cause: 'the worker left', died: false }),
    }
  }

  /** Its connection ends with an error: the worker comes back with what it holds. */
  function drop(worker: string, connection: Connection) {
    if (connections.get(worker) === connection) connections.delete(worker)
    connection.cut()
  }

  function receive({ worker, wire, cut }: Speaker, event: WorkerEventFromClient) {
    if (event.kind === 'renew') {
      actor.post({ type: 'worker_renewed', worker, lagMs: event.lagMs }, () => {
        // It was silent for too long and counts as dead.
        if (!actor.run.workers.has(worker)) cut()
      })
      for (const { lease, token } of event.leases) {
        if (!holdsLease(actor.run, worker, lease, token)) {
          wire.send({
            kind: 'revoked',
            lease,
            cause: 'the lease went to another worker, or is over',
          })
        }
      }
      return
    }
    const of = fenced(event)
    if (event.kind === 'report') void report(wire, event, of)
    else if (of) actor.post({ type: event.kind, ...of })
  }

  async function report(wire: WorkerWire, event: Report, of: Fenced | undefined) {
    const { lease } = event
    if (of === undefined) {
      wire.send({ kind: 'settled', lease, accepted: false, reason: 'there is no such lease' })
      return
    }
    let found = boundedReport(event.report)
    if (found.kind === 'returned' && found.dataBlob !== undefined) {
      const kept = await keepBlob(found.dataBlob).then(
        () => true,
        () => false,
      )
      if (!kept) found = invalid(`the data's blob ${found.dataBlob} was not uploaded`)
    }
    const { agentMs, modelMs, lagMs, flags } = event
    actor.post(
      { type: 'reported', ...of, report: found, agentMs, modelMs, lagMs, flags },
      (answer) => settle(wire, lease, answer),
    )
  }

  return {
    attach,
    isAttached: (worker) => connections.has(worker),
    send(worker, lease) {
      connections.get(worker)?.wire.send({ kind: 'lease', lease })
    },
    revoke(worker, lease, cause) {
      connections.get(worker)?.wire.send({ kind: 'revoked', lease, cause })
    },
    end(reason) {
      for (const { finish, cut } of connections.values()) {
        if (reason === 'over') finish()
        else cut()
      }
      connections.clear()
    },
    get attached() {
      return connections.size
    },
  }
}

function holdsLease(run: Run, worker: string, lease: string, token: number): boolean {
  const of = attemptOfLease(lease)
  if (of?.token !== token || !isCurrent(run, of)) return false
  return run.live.get(of.episode)?.current?.worker === worker
}

interface Speaker {
  readonly worker: string
  readonly wire: WorkerWire
  cut(): void
}
type Report = Extract<WorkerEventFromClient, { kind: 'report' }>
interface Fenced {
  readonly episode: number
  readonly attempt: number
  readonly token: number
}

function fenced({ lease, token }: { lease: string; token: number }): Fenced | undefined {
  const of = attemptOfLease(lease)
  return of?.token === token ? of : undefined
}

function settle(wire: WorkerWire, lease: string, answer: Answer) {
  if (!answer.ok) return
  wire.send(
    answer.ignored === undefined
      ? { kind: 'settled', lease, accepted: true }
      : { kind: 'settled', lease, accepted: false, reason: answer.ignored },
  )
}

/** What goes to a worker. */
export function leaseOf(
  offer: LeaseOffer,
  task: { readonly taskJson: string | null; readonly taskBlob: string | null },
  names: { readonly episode: string; readonly world: 'main' | 'grade' },
): Lease {
  const { token, phase, key, attempt, seed, policyVersion, sandbox } = offer
  return {
    lease: leaseId(offer),
    token,
    phase,
    episode: names.episode,
    key,
    index: offer.episode,
    attempt,
    seed,
    policyVersion,
    sandbox,
    world: names.world,
    taskJson: task.taskJson,
    taskBlob: task.taskBlob,
    dataJson: offer.dataJson,
    dataBlob: offer.dataBlob,
    timeoutMs: offer.timeoutMs,
    modelTimeoutMs: offer.modelTimeoutMs,
  }
}
