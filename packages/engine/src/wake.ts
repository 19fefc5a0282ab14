import { onAbort } from './on-abort.ts'

/**
 * Remembers that something happened until somebody asks. One waiter at a time; waking twice before it asks counts once.
 */
export class Wake {
  #happened = false
  #resolve: (() => void) | undefined

  wake(): void {
    this.#happened = true
    this.#resolve?.()
  }

  /** Forget what happened so far. Call it before looking at the state, so that nothing falls between. */
  reset(): void {
    this.#happened = false
  }

  /** Resolves at the next `wake` since the last `reset`; rejects with the reason of the first signal that aborts. */
  async wait(signals: readonly (AbortSignal | undefined)[]): Promise<void> {
    for (const signal of signals) signal?.throwIfAborted()
    if (this.#happened) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#resolve = resolve
    const stops = signals.map((signal) => onAbort(signal, () => reject(signal?.reason)))
    try {
      await promise
    } finally {
      this.#resolve = undefined
      for (const stop of stops) stop()
    }
  }
}
