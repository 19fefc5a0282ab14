import { type Clock, deadline } from '@sandlot/engine'
import type { Blank, RuntimeDriver } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../../limits.ts'
import type { Creations } from '../creations.ts'
import type { Demand } from './demand.ts'

/** What waits on a shelf. `Kit` is what one is started with, `Wanted` what it is to become. */
export interface Stock<Kit, Wanted> {
  readonly size: number
  /** What the next one should have, while `starting` are under way, to be `target` in all. */
  kitOfNext(starting: readonly Kit[], target: number): Kit
  add(blank: Blank, kit: Kit): void
  has(hostId: string): boolean
  /** False where it does not wait. */
  remove(blank: Blank): boolean
  /** Takes out the one with the least left to do. */
  take(wanted: Wanted): Blank | undefined
  /** Takes out one that was made for somebody who doesn't come any more. */
  takeStale(): Blank | undefined
  /** Takes out the one that is missed least. */
  takeSpare(): Blank | undefined
  /** What the last kit had may be the reason that a start failed. */
  forgetWanted(): void
}

export interface TakeCounts {
  /** Those that were taken, and times that none was there. */
  hits: number
  misses: number
  /** Starts that failed, and those that died waiting. */
  failures: number
}

export interface ShelfOptions<Kit, Wanted> {
  readonly driver: RuntimeDriver
  readonly creations: Creations
  readonly clock: Clock
  readonly log: Logger
  /** What waits on it, for the log. */
  readonly what: string
  readonly demand: Demand
  /** Shared by the shelves of a kind. */
  readonly counts: TakeCounts
  readonly stock: Stock<Kit, Wanted>
  start(kit: Kit, signal: AbortSignal): Promise<Blank>
  /** Whether a start that failed so would always fail so. */
  isFinal(error: unknown): boolean
  /** What waits is another number than before, or more may be started. */
  changed(): void
}

/** Sandboxes of one kind that wait: as many as it is told to keep, dead ones replaced. */
export class Shelf<Kit = unknown, Wanted = unknown> {
  readonly demand: Demand
  readonly #options: ShelfOptions<Kit, Wanted>
  /** Each ends by an abort of its key. */
  readonly #starts = new Map<AbortController, { readonly kit: Kit; readonly over: Promise<void> }>()
  /** What is on its way out. */
  readonly #leaving = new Set<Promise<unknown>>()
  /** What one takes of the machine's memory; until that is known none fits. */
  bytes = Number.POSITIVE_INFINITY
  /** As many as there should be. */
  target = 0
  #refused = false
  #resting = false
  #backOffMs: number = SERVER_LIMITS.refillWaitMs

  constructor(options: ShelfOptions<Kit, Wanted>) {
    this.#options = options
    this.demand = options.demand
  }

  get ready(): number {
    return this.#options.stock.size
  }

  /** Whether it waits here. */
  holds(hostId: string): boolean {
    return this.#options.stock.has(hostId)
  }

  get starting(): number {
    return this.#starts.size
  }

  /** Nothing waits on it, and nothing is wanted. */
  isBare(nowMs: number): boolean {
    return this.ready === 0 && this.starting === 0 && this.demand.wanted(nowMs) === 0
  }

  /** How many are wanted, if there is room for them. */
  wanted(nowMs: number): number {
    return this.#refused ? 0 : this.demand.wanted(nowMs)
  }

  /** One that can become what is wanted. */
  take(wanted: Wanted): Blank | undefined {
    const { stock, counts } = this.#options
    const blank = stock.take(wanted)
    if (blank) counts.hits += 1
    else counts.misses += 1
    return blank
  }

  /** So many are to wait from now on: what is too much goes at once. */
  keep(target: number): void {
    const { stock } = this.#options
    this.target = target
    const surplus = () => this.ready + this.starting - target
    for (const start of [...this.#starts.keys()].reverse()) if (surplus() > 0) this.#cancel(start)
    while (surplus() > 0) this.#end(stock.takeSpare())
  }

  /** Starts what is too little, unless the last start failed; beyond the least no more than `budget`. Gives what is left of that. */
  refill(budget: number): number {
    if (this.#resting || this.#refused) return budget
    if (this.starting === 0) this.#end(this.#options.stock.takeStale())
    let left = budget
    for (let all = this.ready + this.starting; all < this.target; all++) {
      if (all >= this.demand.min && left-- < 1) return 0
      this.#begin()
    }
    return left
  }

  /** Resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#refused = true
    this.keep(0)
    while (this.#leaving.size > 0) await Promise.allSettled(this.#leaving)
  }

  #begin(): void {
    const { stock, changed } = this.#options
    const starting = [...this.#starts.values()].map(({ kit }) => kit)
    const kit = stock.kitOfNext(starting, this.target)
    const start = new AbortController()
    const over = this.#start(kit, start.signal).finally(() => {
      this.#starts.delete(start)
      changed()
    })
    this.#starts.set(start, { kit, over })
  }

  #cancel(start: AbortController): void {
    const started = this.#starts.get(start)
    this.#starts.delete(start)
    start.abort(new Error('it is not wanted any more'))
    if (started) this.#leave(started.over)
  }

  async #start(kit: Kit, signal: AbortSignal): Promise<void> {
    const { stock, creations, demand, log, what } = this.#options
    try {
      const within = async () => {
        using late = deadline(SERVER_LIMITS.createMs, signal)
        return await this.#options.start(kit, late.signal)
      }
      const blank = await creations.run('ahead', within, { signal })
      if (signal.aborted) return this.#end(blank)
      this.#backOffMs = SERVER_LIMITS.refillWaitMs
      stock.add(blank, kit)
      demand.filled()
      void blank.gone.then((fate) => {
        if (!stock.remove(blank)) return
        const { kind, detail } = fate
        log.warn({ blank: blank.hostId, fate: kind, detail }, `${what} died`)
        this.#failed()
      })
    } catch (error) {
      if (signal.aborted) return
      this.#refused ||= this.#options.isFinal(error)
      stock.forgetWanted()
      log.warn({ err: error }, `${what} did not start`)
      this.#failed()
    }
  }

  #end(blank: Blank | undefined): void {
    if (blank) this.#leave(this.#options.driver.stop(blank))
  }

  #leave(leaving: Promise<unknown>): void {
    const left = leaving
      .catch((error) => this.#options.log.error({ err: error }, 'one that waited was not stopped'))
      .finally(() => this.#leaving.delete(left))
    this.#leaving.add(left)
  }

  /** A machine that starts nothing is not asked without pause. */
  #failed(): void {
    this.#options.counts.failures += 1
    if (this.#resting) return
    this.#resting = true
    this.#options.clock.after(this.#backOffMs, () => {
      this.#resting = false
      this.#options.changed()
    })
    this.#backOffMs = Math.min(this.#backOffMs * 2, SERVER_LIMITS.refillWaitMsMax)
  }
}
