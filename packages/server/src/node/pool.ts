import type { Clock } from '@sandlot/engine'
import type { Blank, RuntimeDriver } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'
import type { Creations } from './creations.ts'
import { type Kit, WaitingBlanks, type Wanted } from './waiting-blanks.ts'

export interface PoolNumbers {
  readonly target: number
  readonly ready: number
  readonly starting: number
  /** Blanks that were taken, and times that none was there. */
  readonly hits: number
  readonly misses: number
  /** Starts that failed, and blanks that died waiting. */
  readonly failures: number
}

/** Blanks that are started ahead of need, up to a fixed target. */
export class BlankPool {
  readonly #driver: RuntimeDriver
  readonly #creations: Creations
  readonly #clock: Clock
  readonly #log: Logger
  readonly #target: number
  readonly #closing = new AbortController()
  readonly #waiting = new WaitingBlanks()
  readonly #starts = new Map<Promise<void>, Kit>()
  #open = false
  #hits = 0
  #misses = 0
  #failures = 0
  /** Somebody has just taken a blank. */
  #holding = false
  #resting = false
  #backOffMs: number = SERVER_LIMITS.refillWaitMs

  constructor(options: {
    readonly driver: RuntimeDriver
    readonly creations: Creations
    readonly clock: Clock
    readonly log: Logger
    /** Without hot mounting there is nothing to do with a blank: then none is made. */
    readonly target: number
  }) {
    this.#driver = options.driver
    this.#creations = options.creations
    this.#clock = options.clock
    this.#log = options.log
    this.#target = options.driver.capabilities.hotMount ? options.target : 0
  }

  get numbers(): PoolNumbers {
    return {
      target: this.#target,
      ready: this.#waiting.size,
      starting: this.#starts.size,
      hits: this.#hits,
      misses: this.#misses,
      failures: this.#failures,
    }
  }

  /** Begins to fill, and keeps full. */
  fill(): void {
    this.#open = true
    this.#refill()
  }

  /** A blank that can become what is wanted; its place is filled again, a little later. */
  take(wanted: Wanted): Blank | undefined {
    const blank = this.#waiting.take(wanted)
    if (this.#target === 0) return undefined
    if (blank) this.#hits += 1
    else this.#misses += 1
    this.#hold()
    return blank
  }

  /** Stops filling, and ends what waits. Idempotent. */
  async close(): Promise<void> {
    this.#open = false
    this.#closing.abort(new Error('the pool is closed'))
    await Promise.allSettled(this.#starts.keys())
    const blanks = this.#waiting.removeAll()
    await Promise.allSettled(blanks.map((blank) => this.#driver.stop(blank)))
  }

  #refill(): void {
    if (!this.#open || this.#holding || this.#resting) return
    const stale = this.#starts.size === 0 ? this.#waiting.takeStale() : undefined
    if (stale) void this.#driver.stop(stale)
    while (this.#waiting.size + this.#starts.size < this.#target) {
      const kit = this.#waiting.kitOfNext([...this.#starts.values()], this.#target)
      const start = this.#start(kit).finally(() => {
        this.#starts.delete(start)
        this.#refill()
      })
      this.#starts.set(start, kit)
    }
  }

  async #start(kit: Kit): Promise<void> {
    const { signal } = this.#closing
    try {
      const blank = await this.#creations.run(
        'ahead',
        () => {
          const deadline = AbortSignal.timeout(SERVER_LIMITS.createMs)
          return this.#driver.createBlank({ ...kit, signal: AbortSignal.any([signal, deadline]) })
        },
        signal,
      )
      if (!this.#open) {
        await this.#driver.stop(blank)
        return
      }
      this.#backOffMs = SERVER_LIMITS.refillWaitMs
      this.#waiting.add(blank, kit)
      void blank.gone.then((fate) => {
        if (!this.#waiting.remove(blank)) return
        this.#failures += 1
        this.#log.warn(
          { blank: blank.hostId, fate: fate.kind, detail: fate.detail },
          'a blank died',
        )
        this.#backOff()
      })
    } catch (error) {
      if (signal.aborted) return
      this.#failures += 1
      this.#waiting.forgetWanted()
      this.#log.warn({ err: error }, 'a blank did not start')
      this.#backOff()
    }
  }

  /**
   * Whoever took a blank is about to use it, and a start would take the processors from them. Further takes prolong nothing: under
   * steady use the pool is filled all the same.
   */
  #hold(): void {
    if (this.#holding) return
    this.#holding = true
    this.#clock.after(SERVER_LIMITS.refillDelayMs, () => {
      this.#holding = false
      this.#refill()
    })
  }

  /** A machine that starts nothing is not asked without pause. */
  #backOff(): void {
    if (this.#resting) return
    this.#resting = true
    this.#clock.after(this.#backOffMs, () => {
      this.#resting = false
      this.#refill()
    })
    this.#backOffMs = Math.min(this.#backOffMs * 2, SERVER_LIMITS.refillWaitMsMax)
  }
}
