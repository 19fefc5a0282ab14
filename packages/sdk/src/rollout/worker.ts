/** The worker of a run: takes leases over the client's connection and reports, also across a lost connection. */
import { setImmediate } from 'node:timers/promises'
import {
  type Lease,
  newId,
  SandlotError,
  type WorkerEventFromClient,
  workerEventFromServer,
} from '@sandlot/protocol'
import { type MuxStream, type PayloadMap, PayloadTooLarge } from '@sandlot/protocol/frames'
import type { ClientContext } from '../connection/context.ts'
import { asSandlotError, toError } from '../connection/failure.ts'
import type { Outage } from '../connection/outage.ts'
import { runAttempt, type WorkerCode } from './attempt.ts'
import { type LagMeter, startLagMeter } from './lag.ts'

const RENEW_MS = 10_000
/** A heartbeat of so many leases fits a frame. */
const RENEW_LEASES_MAX = 500
/** A connection that lasted so long was a good one. */
const STEADY_MS = 5_000

export interface WorkerOptions<Task> {
  readonly run: string
  readonly slots: number
  readonly code: WorkerCode<Task>
  /** Leaves the run: its leases go to other workers at once. */
  readonly signal: AbortSignal
}

type Report = Extract<WorkerEventFromClient, { kind: 'report' }>

/**
 * A lease that this worker has.
 *
 * held: its function runs, which each new connection is told ─▶ reported: the report is sent on each new connection until the
 * daemon settles it ─▶ gone.
 * A revoked one is gone at once, and whatever its function does then is nobody's business.
 */
interface Held {
  readonly lease: Lease
  readonly abort: AbortController
  report?: Report
}

/** Works until the run is over. Resolves then, or when the signal is aborted; throws when the daemon stays away or refuses. */
export async function work<Task>(
  context: ClientContext,
  options: WorkerOptions<Task>,
): Promise<void> {
  await new Worker(context, options).run()
}

class Worker<Task> {
  readonly #context: ClientContext
  readonly #options: WorkerOptions<Task>
  readonly #outage: Outage
  readonly #id = newId('worker')
  readonly #held = new Map<string, Held>()
  readonly #lag: LagMeter = startLagMeter()
  #stream: MuxStream | undefined
  #lagSentMs = 0
  #lagToldMs = 0

  constructor(context: ClientContext, options: WorkerOptions<Task>) {
    this.#context = context
    this.#options = options
    this.#outage = context.connection.outage()
  }

  async run(): Promise<void> {
    const { signal } = this.#options
    const renewing = setInterval(() => this.#renew(), RENEW_MS)
    const leave = () => this.#stream?.cancel()
    signal.addEventListener('abort', leave, { once: true })
    try {
      while (!signal.aborted && !(await this.#serve())) {}
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      clearInterval(renewing)
      signal.removeEventListener('abort', leave)
      this.#lag.stop()
      const reason = signal.aborted ? toError(signal.reason) : new Error('the run is over')
      for (const { abort } of this.#held.values()) abort.abort(reason)
    }
  }

  /** One connection's worth of work. True: the run is over. False: come back. */
  async #serve(): Promise<boolean> {
    const { run, slots, signal } = this.#options
    const startedMs = performance.now()
    try {
      const request = { op: 'worker', run, worker: this.#id, slots, held: this.#which() } as const
      const stream = await this.#context.connection.open(request)
      this.#stream = stream
      stream.onEvent = (event) => this.#handle(event)
      for (const { lease, report } of this.#held.values()) {
        if (report) this.#report(report)
        else this.#send({ kind: 'taken', ...idOf(lease) })
      }
      if (signal.aborted) stream.cancel()
      await stream.done
      return true
    } catch (thrown) {
      const error = asSandlotError(thrown)
      if (signal.aborted) return true
      if (!(error instanceof SandlotError) || !error.retry) throw error
      if (performance.now() - startedMs > STEADY_MS) this.#outage.over()
      await this.#outage.wait(error, signal)
      return false
    } finally {
      this.#stream = undefined
    }
  }

  #handle(payload: PayloadMap): void {
    const parsed = workerEventFromServer.safeParse(payload)
    // An event of a newer daemon is none of ours.
    if (!parsed.success) return
    this.#outage.over()
    const event = parsed.data
    if (event.kind === 'lease') {
      if (!this.#held.has(event.lease.lease)) void this.#attempt(event.lease)
      return
    }
    if (event.kind === 'draining') {
      this.#context.notices.draining()
      return
    }
    const held = this.#held.get(event.lease)
    this.#held.delete(event.lease)
    if (event.kind === 'revoked') held?.abort.abort(new Error(`the lease ended: ${event.cause}`))
  }

  async #attempt(lease: Lease): Promise<void> {
    const held: Held = { lease, abort: new AbortController() }
    this.#held.set(lease.lease, held)
    const which = idOf(lease)
    const { signal } = held.abort
    this.#send({ kind: 'taken', ...which })
    // What comes next may end this process: that it began must have left it before.
    await setImmediate()
    if (signal.aborted) return
    const end = await runAttempt(this.#context, lease, this.#options.code, {
      signal,
      lag: this.#lag,
      hooks: {
        modelStarted: () => this.#send({ kind: 'model_started', ...which }),
        modelEnded: () => this.#send({ kind: 'model_ended', ...which }),
      },
    })
    if (this.#held.get(lease.lease) !== held) return
    held.report = { kind: 'report', ...which, ...end, flags: [] }
    this.#report(held.report)
  }

  /** Also without a lease: a worker that is silent counts as dead. */
  #renew(): void {
    const leases = this.#which()
    const totalMs = this.#lag.total()
    let lagMs = totalMs - this.#lagSentMs
    this.#context.notices.ranLate(totalMs - this.#lagToldMs)
    this.#lagToldMs = totalMs
    let start = 0
    do {
      const some = leases.slice(start, start + RENEW_LEASES_MAX)
      if (!this.#send({ kind: 'renew', leases: some, lagMs })) return
      this.#lagSentMs = totalMs
      lagMs = 0
      start += RENEW_LEASES_MAX
    } while (start < leases.length)
  }

  #which() {
    return [...this.#held.values()].map(({ lease }) => idOf(lease))
  }

  #report(report: Report): void {
    try {
      this.#send(report)
    } catch (error) {
      if (!(error instanceof PayloadTooLarge)) throw error
      const cause = [`the result does not fit a report: ${error.message}`]
      this.#send({ ...report, report: { kind: 'invalid', cause } })
    }
  }

  /** False where there is no connection: what matters is sent again on the next one. */
  #send(event: WorkerEventFromClient): boolean {
    this.#stream?.event(event as PayloadMap)
    return this.#stream !== undefined
  }
}

/** What a lease goes by in all that is said of it. */
function idOf({ lease, token }: Lease) {
  return { lease, token }
}
