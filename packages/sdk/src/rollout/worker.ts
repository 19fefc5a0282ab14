/** The worker of a run: takes leases over the client's connection and reports, also across a lost connection. */
import {
  type Lease,
  newId,
  type WorkerEventFromClient,
  workerEventFromServer,
} from '@sandlot/protocol'
import type { MuxStream, PayloadMap } from '@sandlot/protocol/frames'
import { asSandlotError, isConnectionLoss } from '../connection/connection.ts'
import { toError } from '../connection/http.ts'
import type { SandboxContext } from '../sandbox/sandbox.ts'
import { runAttempt } from './attempt.ts'
import type { Episode, Grader } from './episode.ts'
import { type LagMeter, startLagMeter } from './lag.ts'

const RENEW_MS = 10_000

export interface WorkerOptions<Task> {
  readonly run: string
  readonly slots: number
  readonly episode: Episode<Task>
  readonly grader: Grader<Task> | undefined
  readonly signal: AbortSignal
}

interface Held {
  readonly lease: Lease
  readonly abort: AbortController
  /** The report, once there is one: sent again on a new connection until it is settled. */
  report?: WorkerEventFromClient
}

/** Works until the run is over. Resolves then, or when the signal is aborted; throws when the daemon stays away. */
export async function work<Task>(
  context: SandboxContext,
  options: WorkerOptions<Task>,
): Promise<void> {
  await new Worker(context, options).run()
}

class Worker<Task> {
  readonly #context: SandboxContext
  readonly #options: WorkerOptions<Task>
  readonly #id = newId('worker')
  readonly #held = new Map<string, Held>()
  readonly #lag: LagMeter = startLagMeter()
  #stream: MuxStream | undefined
  #lagSeenMs = 0

  constructor(context: SandboxContext, options: WorkerOptions<Task>) {
    this.#context = context
    this.#options = options
  }

  async run(): Promise<void> {
    const renewing = setInterval(() => this.#renew(), RENEW_MS)
    const leave = () => this.#stream?.cancel()
    this.#options.signal.addEventListener('abort', leave, { once: true })
    try {
      while (!this.#options.signal.aborted) {
        if (await this.#serve()) return
        await this.#context.connection.reconnect(this.#options.signal)
      }
    } catch (error) {
      if (!this.#options.signal.aborted) throw asSandlotError(error)
    } finally {
      clearInterval(renewing)
      this.#options.signal.removeEventListener('abort', leave)
      this.#lag.stop()
      for (const { abort } of this.#held.values()) abort.abort(new Error('the run is over'))
    }
  }

  /** One connection's worth of work. True: the run is over. False: the connection was lost. */
  async #serve(): Promise<boolean> {
    const { run, slots } = this.#options
    const held = [...this.#held.values()].map(({ lease: { lease, token } }) => ({ lease, token }))
    try {
      const stream = await this.#context.connection.open({
        op: 'worker',
        run,
        worker: this.#id,
        slots,
        held,
      })
      this.#stream = stream
      stream.onEvent = (event) => this.#handle(event)
      for (const { report } of this.#held.values()) if (report) this.#send(report)
      if (this.#options.signal.aborted) stream.cancel()
      await stream.done
      return true
    } catch (error) {
      if (isConnectionLoss(error)) return false
      throw error
    } finally {
      this.#stream = undefined
    }
  }

  #handle(payload: PayloadMap): void {
    const parsed = workerEventFromServer.safeParse(payload)
    // An event of a newer daemon is none of ours.
    if (!parsed.success) return
    const event = parsed.data
    if (event.kind === 'lease') {
      if (!this.#held.has(event.lease.lease)) void this.#attempt(event.lease)
      return
    }
    const held = this.#held.get(event.lease)
    this.#held.delete(event.lease)
    if (event.kind === 'revoked') held?.abort.abort(toError(event.cause))
  }

  async #attempt(lease: Lease): Promise<void> {
    const held: Held = { lease, abort: new AbortController() }
    this.#held.set(lease.lease, held)
    const which = { lease: lease.lease, token: lease.token }
    const { episode, grader } = this.#options
    const end = await runAttempt(
      this.#context,
      lease,
      { episode, grader },
      {
        signal: held.abort.signal,
        lag: this.#lag,
        hooks: {
          modelStarted: () => this.#send({ kind: 'model_started', ...which }),
          modelEnded: () => this.#send({ kind: 'model_ended', ...which }),
        },
      },
    )
    held.report = { kind: 'report', ...which, ...end, flags: [] }
    // A lease that was revoked meanwhile is nobody's business any more.
    if (this.#held.get(lease.lease) === held) this.#send(held.report)
  }

  #renew(): void {
    const totalMs = this.#lag.total()
    const leases = [...this.#held.values()].map(({ lease: { lease, token } }) => ({ lease, token }))
    const lagMs = totalMs - this.#lagSeenMs
    this.#lagSeenMs = totalMs
    for (let start = 0; start < leases.length; start += RENEW_LEASES_MAX) {
      this.#send({ kind: 'renew', leases: leases.slice(start, start + RENEW_LEASES_MAX), lagMs })
    }
  }

  #send(event: WorkerEventFromClient): void {
    try {
      this.#stream?.event(event as PayloadMap)
    } catch {
      // The connection is going down: what matters is sent again on the next one.
    }
  }
}

/** A heartbeat of so many leases fits a frame. */
const RENEW_LEASES_MAX = 1_000
