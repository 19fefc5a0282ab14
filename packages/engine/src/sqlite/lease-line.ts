import type { Clock } from '../clock.ts'
import { onAbort } from '../on-abort.ts'
import type { Lease } from '../queue.ts'
import type { Journal, Reply } from './journal.ts'
import type { LeaseWant } from './operation.ts'

/** Wants that one question to the storage thread carries. */
const WANTS_MAX = 256

export interface LeaseLineOptions {
  readonly queue: string
  readonly journal: Journal
  readonly clock: Clock
  readonly closing: AbortSignal
  /** For messages whose taker has gone in the meantime. */
  readonly giveBack: (lease: Lease) => Promise<void>
  /** Nobody is in the line any more. */
  readonly emptied: () => void
}

/**
 * Those who want messages of one queue, served in the order in which they came.
 *
 * The line asks the storage thread when somebody joins, when a message became ready, and when the next delayed or leased one
 * is due; it never polls. One question is under way at a time; what happens meanwhile leads to another.
 */
export class LeaseLine {
  readonly #options: LeaseLineOptions
  readonly #line = new Set<Waiter>()
  #asking = false
  #askAgain = false
  #due: { atMs: number; cancel: () => void } | undefined

  constructor(options: LeaseLineOptions) {
    this.#options = options
  }

  /** Resolves with what there is, or with nothing when the wait is over. */
  async join(want: LeaseWant, waitMs: number, signal: AbortSignal | undefined): Promise<Lease[]> {
    const { clock, closing } = this.#options
    closing.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<Lease[]>()
    const waiter: Waiter = { want, patient: waitMs > 0, done: false, resolve, reject }
    const cancelTimer = waiter.patient
      ? clock.after(waitMs, () => this.#timeOut(waiter))
      : undefined
    const abort = () =>
      this.#settle(waiter, () => reject((signal?.aborted ? signal : closing).reason))
    const stops = [signal, closing].map((source) => onAbort(source, abort))
    this.#line.add(waiter)
    this.#ask()
    try {
      return await promise
    } finally {
      cancelTimer?.()
      for (const stop of stops) stop()
    }
  }

  /** A message is, or will be, ready at this time. */
  due(atMs: number): void {
    if (atMs <= this.#options.clock.now()) this.#ask()
    else this.#arm(atMs)
  }

  /** The question under way, if any, still decides what the waiter gets. */
  #timeOut(waiter: Waiter): void {
    if (this.#asking) waiter.patient = false
    else this.#settle(waiter, () => waiter.resolve([]))
  }

  #ask(): void {
    if (this.#asking) {
      this.#askAgain = true
      return
    }
    if (this.#line.size === 0) return
    const asked = first(this.#line, WANTS_MAX)
    const { queue, journal, clock } = this.#options
    const request = { queue, wants: asked.map((waiter) => waiter.want), nowMs: clock.now() }
    this.#asking = true
    this.#askAgain = false
    journal.submit('queue.lease', request).then(
      (reply) => this.#serve(asked, reply),
      (error) => this.#refuse(asked, error),
    )
  }

  #serve(asked: readonly Waiter[], { result, bytes }: Reply<'queue.lease'>): void {
    this.#asking = false
    let body = 0
    for (const [index, waiter] of asked.entries()) {
      const leases = (result.leases[index] ?? []).map((row) => ({
        ...row,
        queue: this.#options.queue,
        body: bytes[body++] ?? new Uint8Array(0),
      }))
      if (waiter.done) this.#giveBack(leases)
      else if (leases.length > 0 || !waiter.patient)
        this.#settle(waiter, () => waiter.resolve(leases))
    }
    const satisfied = asked.every((waiter) => waiter.done)
    if (this.#askAgain || satisfied) this.#ask()
    else if (result.nextDueAtMs !== null) this.#arm(result.nextDueAtMs)
    this.#rest()
  }

  #refuse(asked: readonly Waiter[], error: unknown): void {
    this.#asking = false
    for (const waiter of asked) this.#settle(waiter, () => waiter.reject(error))
    this.#ask()
    this.#rest()
  }

  /** A lease that can't be given back runs out by itself. */
  #giveBack(leases: readonly Lease[]): void {
    for (const lease of leases) this.#options.giveBack(lease).catch(() => {})
  }

  /** Answers once; the waiter leaves the line. */
  #settle(waiter: Waiter, answer: () => void): void {
    if (waiter.done) return
    waiter.done = true
    this.#line.delete(waiter)
    answer()
    this.#rest()
  }

  #rest(): void {
    if (this.#line.size > 0) return
    this.#due?.cancel()
    this.#due = undefined
    if (!this.#asking) this.#options.emptied()
  }

  #arm(atMs: number): void {
    if (this.#line.size === 0) return
    if (this.#due && this.#due.atMs <= atMs) return
    this.#due?.cancel()
    const cancel = this.#options.clock.after(atMs - this.#options.clock.now(), () => {
      this.#due = undefined
      this.#ask()
    })
    this.#due = { atMs, cancel }
  }
}

interface Waiter {
  readonly want: LeaseWant
  /** Waits on where there is nothing at the moment. */
  patient: boolean
  done: boolean
  readonly resolve: (leases: Lease[]) => void
  readonly reject: (reason: unknown) => void
}

function first<T>(items: Iterable<T>, count: number): T[] {
  const taken: T[] = []
  for (const item of items) {
    if (taken.length === count) break
    taken.push(item)
  }
  return taken
}
