import {
  attemptInProgress,
  type EpisodePhase,
  type InputBody,
  isCurrent,
  type LeaseOffer,
  type Run,
} from '@sandlot/core'
import { type Artifact, type Lease, SandlotError } from '@sandlot/protocol'
import { defined } from '../defined.ts'
import { attemptOfLease, leaseId } from './ids.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import type { WorkerEvent, WorkerRequest, WorkerStream, WorkerWire } from './port.ts'
import type { Answer, RunActor } from './run-actor.ts'
import { boundedReport, invalid } from './worker-report.ts'

export interface WorkerStreamsOptions {
  readonly actor: RunActor
  /** Keeps a result's blob for as long as the run; rejects with `blob_unknown`. */
  keepBlob(digest: string): Promise<void>
}

interface Connection {
  readonly wire: WorkerWire
  /** There is nothing left to do on it. */
  readonly finish: () => void
  /** It ends with an error: the worker comes back with what it holds. */
  readonly cut: () => void
  /**
   * Core has decided on its attachment. What was offered before that was offered to an earlier connection: it is not sent, and is
   * offered anew because the worker does not hold it.
   */
  known: boolean
  /** Leases whose reports are being made durable. */
  readonly reporting: Set<string>
}

/** The workers of one run: their connections, and what is said on them. Who has which lease, core knows. */
export class WorkerStreams {
  readonly #actor: RunActor
  readonly #keepBlob: WorkerStreamsOptions['keepBlob']
  readonly #connections = new Map<string, Connection>()

  constructor({ actor, keepBlob }: WorkerStreamsOptions) {
    this.#actor = actor
    this.#keepBlob = keepBlob
  }

  get attached(): number {
    return this.#connections.size
  }

  /** Whether a lease can be sent to the worker. */
  isAttached(worker: string): boolean {
    return this.#connections.get(worker)?.known === true
  }

  send(worker: string, lease: Lease): void {
    this.#connections.get(worker)?.wire.send({ kind: 'lease', lease })
  }

  revoke(worker: string, lease: string, cause: string): void {
    this.#connections.get(worker)?.wire.send({ kind: 'revoked', lease, cause })
  }

  /** Nothing more is admitted, and the daemon will stop. */
  tellDraining(): void {
    for (const { wire } of this.#connections.values()) wire.send({ kind: 'draining' })
  }

  /** The run is over: every stream's `done` resolves. Or its coordinator lets go of it: `done` rejects, and they come back. */
  end(reason: 'over' | 'gone'): void {
    for (const { finish, cut } of this.#connections.values()) {
      if (reason === 'over') finish()
      else cut()
    }
    this.#connections.clear()
  }

  attach(request: WorkerRequest, wire: WorkerWire): WorkerStream {
    const { worker, slots } = request
    const { promise: done, resolve: finish, reject } = Promise.withResolvers<void>()
    done.catch(() => {})
    const cut = () => reject(new SandlotError('draining', 'the run is let go of: come back'))
    const connection: Connection = { wire, finish, cut, known: false, reporting: new Set() }
    this.#connections.get(worker)?.finish()
    this.#connections.set(worker, connection)
    const held = request.held.map(({ token }) => token)
    this.#actor.decide(
      () => {
        connection.known = true
        return [{ type: 'worker_attached', worker, slots, held }]
      },
      () => {},
    )
    return {
      done,
      receive: (event) => this.#receive(worker, connection, event),
      lost: () => this.#detach(worker, connection, { type: 'worker_detached', worker }),
      left: () => {
        const cause = 'the worker left'
        this.#detach(worker, connection, { type: 'worker_lost', worker, cause, died: false })
      },
      died: (cause) =>
        this.#detach(worker, connection, { type: 'worker_lost', worker, cause, died: true }),
    }
  }

  #detach(worker: string, connection: Connection, input: InputBody): void {
    connection.finish()
    if (this.#connections.get(worker) !== connection) return
    this.#connections.delete(worker)
    this.#actor.post(input)
  }

  #cut(worker: string, connection: Connection): void {
    connection.cut()
    this.#detach(worker, connection, { type: 'worker_detached', worker })
  }

  #receive(worker: string, connection: Connection, event: WorkerEvent): void {
    if (this.#connections.get(worker) !== connection) return
    if (this.#actor.inputsWaiting > COORDINATOR_LIMITS.inputsWaiting) {
      // More is said than can be decided on.
      this.#cut(worker, connection)
    } else if (event.kind === 'renew') {
      this.#renew(worker, connection, event)
    } else if (event.kind === 'report') {
      this.#report(connection, event).catch(() => this.#cut(worker, connection))
    } else {
      const of = fenced(event)
      const type = event.kind === 'taken' ? 'lease_taken' : event.kind
      if (of) this.#actor.post({ type, ...of })
    }
  }

  #renew(worker: string, connection: Connection, { leases, lagMs }: Renewal): void {
    const { run } = this.#actor
    this.#actor.post({ type: 'worker_renewed', worker, lagMs }, (answer) => {
      // It was silent for too long and counts as dead.
      if (answer.ok && !run.workers.has(worker)) this.#cut(worker, connection)
    })
    for (const { lease, token } of leases) {
      if (connection.reporting.has(lease) || holdsLease(run, worker, lease, token)) continue
      const cause = 'the lease went to another worker, or is over'
      connection.wire.send({ kind: 'revoked', lease, cause })
    }
  }

  /** Rejects where the report could not be taken, by no fault of its own. */
  async #report({ wire, reporting }: Connection, event: Report): Promise<void> {
    const { lease, agentMs, modelMs, lagMs, flags, fault, artifacts = [] } = event
    const of = fenced(event)
    if (of === undefined) {
      wire.send({ kind: 'settled', lease, accepted: false, reason: 'there is no such lease' })
      return
    }
    reporting.add(lease)
    let report = boundedReport(event.report)
    const blob = report.kind === 'returned' ? report.dataBlob : undefined
    if (blob !== undefined && !(await this.#isKept(blob))) {
      report = invalid(`the data's blob ${blob} was not uploaded`)
    }
    const kept: Artifact[] = []
    for (const artifact of artifacts) if (await this.#isKept(artifact.blob)) kept.push(artifact)
    const more = defined({ agentMs, modelMs, lagMs, fault })
    const input = { type: 'reported', ...of, report, ...more, flags, artifacts: kept } as const
    this.#actor.post(input, (answer) => {
      reporting.delete(lease)
      settle(wire, lease, answer)
    })
  }

  /** Keeps a blob for as long as the run; false where it was never uploaded. */
  async #isKept(blob: string): Promise<boolean> {
    try {
      await this.#keepBlob(blob)
      return true
    } catch (error) {
      if (error instanceof SandlotError && error.code === 'blob_unknown') return false
      throw error
    }
  }
}

/** A worker of a run that is over has nothing to do. */
export const OVER: WorkerStream = {
  receive() {},
  lost() {},
  left() {},
  died() {},
  done: Promise.resolve(),
}

function holdsLease(run: Run, worker: string, lease: string, token: number): boolean {
  const of = attemptOfLease(lease)
  if (of?.token !== token || !isCurrent(run, of)) return false
  return attemptInProgress(run, of)?.current?.worker === worker
}

/** Whether a worker has this lease, and it is one of this sandbox. */
export function isHeld(run: Run, lease: string, sandbox: string): boolean {
  const of = attemptOfLease(lease)
  if (of === undefined || !isCurrent(run, of)) return false
  const episode = attemptInProgress(run, of)
  return episode?.current?.sandbox === sandbox && HELD.has(episode.phase)
}

const HELD: ReadonlySet<EpisodePhase> = new Set([
  ...(['offered', 'agent', 'model', 'grade_offered', 'grading'] as const),
])

type Renewal = Extract<WorkerEvent, { kind: 'renew' }>
type Report = Extract<WorkerEvent, { kind: 'report' }>
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
  const { token, phase, key, group, member, attempt, seed, policyVersion, sandbox } = offer
  return {
    lease: leaseId(offer),
    token,
    phase,
    episode: names.episode,
    key,
    group,
    member,
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
