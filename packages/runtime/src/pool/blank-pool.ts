import { type Blank, DriverError, type RuntimeDriver, type Wait } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'

/** Waiting before another try; the default is the machine's clock. */
export interface PoolClock {
  after(delayMs: number, call: () => void): () => void
}

export interface BlankPoolOptions {
  readonly driver: Pick<RuntimeDriver, 'createBlank' | 'stop'>
  /** Blanks kept ready. 0 is a pool that always starts cold. */
  readonly size: number
  /** Starts under way for the pool itself; whoever waits for a blank adds his own. */
  readonly refillsAtOnce?: number
  readonly clock?: PoolClock
}

export interface PoolNumbers {
  readonly size: number
  readonly ready: number
  readonly starting: number
  /** Callers without a blank yet. */
  readonly waiting: number
  /** Since the pool began. */
  readonly taken: number
  /** Taken when none was ready. */
  readonly misses: number
  readonly died: number
  readonly failedStarts: number
}

interface Waiter {
  readonly give: (blank: Blank) => void
  readonly fail: (error: unknown) => void
}

/**
 * Keeps blanks ready, ahead of need. Every taken or dead one is replaced; failed starts are tried again with growing
 * pauses, so that a broken machine is not kept busy. A caller never waits for a start that nobody makes.
 */
export class BlankPool implements AsyncDisposable {
  readonly #driver: BlankPoolOptions['driver']
  readonly #refillsAtOnce: number
  readonly #clock: PoolClock
  readonly #ready: Blank[] = []
  readonly #waiters: Waiter[] = []
  readonly #starts = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  #size: number
  #taken = 0
  #misses = 0
  #died = 0
  #failedStarts = 0
  #backoffMs = 0
  #cancelPause: (() => void) | undefined

  constructor(options: BlankPoolOptions) {
    this.#driver = options.driver
    this.#size = options.size
    this.#refillsAtOnce = options.refillsAtOnce ?? RUNTIME_LIMITS.poolRefillsAtOnce
    this.#clock = options.clock ?? machineClock
    this.#refill()
  }

  get numbers(): PoolNumbers {
    return {
      size: this.#size,
      ready: this.#ready.length,
      starting: this.#starts.size,
      waiting: this.#waiters.length,
      taken: this.#taken,
      misses: this.#misses,
      died: this.#died,
      failedStarts: this.#failedStarts,
    }
  }

  /** A blank of the pool, or one that is started now. Fails as `createBlank` does. */
  take(wait: Wait = {}): Promise<Blank> {
    const { signal } = wait
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#closing.signal.aborted) return Promise.reject(closed())
    this.#taken++
    const blank = this.#ready.shift()
    if (!blank) return this.#wait(signal)
    this.#refill()
    return Promise.resolve(blank)
  }

  /** More are started; too many are stopped, the youngest first. */
  async resize(size: number): Promise<void> {
    this.#size = size
    const surplus = this.#ready.splice(size)
    this.#refill()
    await Promise.all(surplus.map((blank) => this.#driver.stop(blank)))
  }

  /** Stops what is ready and what is being started. Callers who wait fail. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#size = 0
    this.#cancelPause?.()
    this.#closing.abort(closed())
    for (const waiter of this.#waiters.splice(0)) waiter.fail(closed())
    await Promise.all(this.#starts)
    await Promise.all(this.#ready.splice(0).map((blank) => this.#driver.stop(blank)))
  }

  #wait(signal: AbortSignal | undefined): Promise<Blank> {
    this.#misses++
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
        reject(signal?.reason)
      }
      const settle =
        <T>(end: (value: T) => void) =>
        (value: T) => {
          signal?.removeEventListener('abort', leave)
          end(value)
        }
      const waiter: Waiter = { give: settle(resolve), fail: settle(reject) }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiters.push(waiter)
      if (this.#starts.size < this.#waiters.length) this.#start()
    })
  }

  #refill(): void {
    if (this.#closing.signal.aborted || this.#cancelPause) return
    const missing = () => this.#size + this.#waiters.length - this.#ready.length - this.#starts.size
    while (missing() > 0 && this.#starts.size < this.#refillsAtOnce + this.#waiters.length) {
      this.#start()
    }
  }

  #start(): void {
    const start = this.#driver
      .createBlank({ signal: this.#closing.signal })
      .then(
        (blank) => this.#started(blank),
        (error) => this.#failed(error),
      )
      .finally(() => {
        this.#starts.delete(start)
        this.#refill()
      })
    this.#starts.add(start)
  }

  #started(blank: Blank): void {
    this.#backoffMs = 0
    const waiter = this.#waiters.shift()
    if (waiter) waiter.give(blank)
    else this.#keep(blank)
  }

  #keep(blank: Blank): void {
    this.#ready.push(blank)
    void blank.gone.then(() => {
      const index = this.#ready.indexOf(blank)
      if (index === -1) return
      this.#ready.splice(index, 1)
      this.#died++
      this.#pause()
    })
  }

  #failed(error: unknown): void {
    if (this.#closing.signal.aborted) return
    this.#failedStarts++
    // The start that failed is still counted; with it gone, somebody would wait for nothing.
    if (this.#waiters.length >= this.#starts.size) this.#waiters.shift()?.fail(error)
    this.#pause()
  }

  /** Refills rest for a while, longer each time until a start succeeds. */
  #pause(): void {
    if (this.#cancelPause || this.#closing.signal.aborted) return
    const { poolBackoffMsFirst, poolBackoffMsMax } = RUNTIME_LIMITS
    this.#backoffMs = Math.min(poolBackoffMsMax, this.#backoffMs * 2 || poolBackoffMsFirst)
    this.#cancelPause = this.#clock.after(this.#backoffMs, () => {
      this.#cancelPause = undefined
      this.#refill()
    })
  }
}

const machineClock: PoolClock = {
  after: (delayMs, call) => {
    const timer = setTimeout(call, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

function closed(): DriverError {
  return new DriverError('create_failed', 'the pool of blanks is closed', {
    hint: 'the daemon is stopping; connect again later',
  })
}
