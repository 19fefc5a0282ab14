import type { Clock } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'

/** Wakes all who wait for news. Take `beats` before looking, and wait for a beat after it: nothing falls between the two. */
export interface Pulse {
  readonly beats: number
  beat(): void
  /** Resolves once there were more beats than `seen`, or after `timeoutMs`. Rejects with the signal's reason. */
  after(
    seen: number,
    wait: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
  ): Promise<void>
}

export function createPulse(clock: Clock, waitersMax: number): Pulse {
  const waiters = new Set<() => void>()
  let beats = 0
  return {
    get beats() {
      return beats
    },
    beat() {
      beats += 1
      for (const wake of waiters) wake()
      waiters.clear()
    },
    async after(seen, { timeoutMs, signal }) {
      signal?.throwIfAborted()
      if (beats > seen) return
      if (waiters.size >= waitersMax) {
        throw new SandlotError('rate_limited', `${waitersMax} readers wait for this run already`)
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const cancel = clock.after(timeoutMs, resolve)
      const abort = () => reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      waiters.add(resolve)
      try {
        await promise
      } finally {
        cancel()
        waiters.delete(resolve)
        signal?.removeEventListener('abort', abort)
      }
    },
  }
}
