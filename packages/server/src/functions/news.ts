import type { Clock } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'

/** Whoever waits for a stream is woken by what is added to it. Subscribe before you look: nothing falls between the two. */
export class News {
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #clock: Clock
  readonly #waitersMax: number
  #waiters = 0

  constructor(clock: Clock, waitersMax: number) {
    this.#clock = clock
    this.#waitersMax = waitersMax
  }

  beat(stream: string): void {
    for (const wake of this.#waiting.get(stream) ?? []) wake()
  }

  /** @throws SandlotError `rate_limited` where too many wait */
  subscribe(
    stream: string,
  ): Disposable & { after(ms: number, signal?: AbortSignal): Promise<void> } {
    if (this.#waiters >= this.#waitersMax) {
      throw new SandlotError('rate_limited', `${this.#waitersMax} readers wait already`)
    }
    this.#waiters += 1
    const { promise, resolve } = Promise.withResolvers<void>()
    const all = this.#waiting.get(stream) ?? new Set()
    this.#waiting.set(stream, all.add(resolve))
    return {
      after: async (ms, signal) => {
        signal?.throwIfAborted()
        const gone = Promise.withResolvers<never>()
        const abort = () => gone.reject(signal?.reason)
        signal?.addEventListener('abort', abort, { once: true })
        const cancel = this.#clock.after(ms, resolve)
        try {
          await Promise.race([promise, gone.promise])
        } finally {
          cancel()
          signal?.removeEventListener('abort', abort)
        }
      },
      [Symbol.dispose]: () => {
        this.#waiters -= 1
        all.delete(resolve)
        if (all.size === 0 && this.#waiting.get(stream) === all) this.#waiting.delete(stream)
      },
    }
  }
}
