import type { Clock } from '@sandlot/engine'
import type { Blank, Layer, RuntimeDriver } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'
import type { Creations } from './creations.ts'

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
  /** What waits, longest first, with the digests of the layers that it has. */
  readonly #ready = new Map<Blank, ReadonlySet<string>>()
  /** Those of the image that was asked for last: what is started now has them, as the next one is likely to be over it too. */
  #layers: readonly Layer[] = []
  readonly #starts = new Set<Promise<void>>()
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
      ready: this.#ready.size,
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

  /** A blank with these layers where there is one, else the one that has waited longest; its place is filled again, a little later. */
  take(layers: readonly Layer[]): Blank | undefined {
    this.#layers = layers.length > SERVER_LIMITS.layersAhead ? [] : layers
    const blank = this.#withLayers(layers) ?? this.#ready.keys().next().value
    if (!blank) {
      if (this.#target > 0) this.#misses += 1
      return undefined
    }
    this.#ready.delete(blank)
    this.#hits += 1
    this.#hold()
    return blank
  }

  /** Stops filling, and ends what waits. Idempotent. */
  async close(): Promise<void> {
    this.#open = false
    this.#closing.abort(new Error('the pool is closed'))
    await Promise.allSettled(this.#starts)
    const blanks = [...this.#ready.keys()]
    this.#ready.clear()
    await Promise.allSettled(blanks.map((blank) => this.#driver.stop(blank)))
  }

  #withLayers(layers: readonly Layer[]): Blank | undefined {
    const has = ([, mounted]: [Blank, ReadonlySet<string>]) =>
      layers.every(({ digest }) => mounted.has(digest))
    return [...this.#ready].find(has)?.[0]
  }

  #refill(): void {
    if (!this.#open || this.#holding || this.#resting) return
    while (this.#ready.size + this.#starts.size < this.#target) {
      const start = this.#start().finally(() => {
        this.#starts.delete(start)
        this.#refill()
      })
      this.#starts.add(start)
    }
  }

  async #start(): Promise<void> {
    const { signal } = this.#closing
    const layers = this.#layers
    try {
      const blank = await this.#creations.run(
        'ahead',
        () => {
          const deadline = AbortSignal.timeout(SERVER_LIMITS.createMs)
          return this.#driver.createBlank({ layers, signal: AbortSignal.any([signal, deadline]) })
        },
        signal,
      )
      if (!this.#open) {
        await this.#driver.stop(blank)
        return
      }
      this.#backOffMs = SERVER_LIMITS.refillWaitMs
      this.#ready.set(blank, new Set(layers.map(({ digest }) => digest)))
      void blank.gone.then((fate) => {
        if (!this.#ready.delete(blank)) return
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
      // They may be gone.
      this.#layers = []
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
