import type { Clock } from '@sandlot/engine'
import { FUNCTION_LIMITS } from './limits.ts'

export interface LookingOptions {
  readonly clock: Clock
  /** One look. Whether to look again after a while, though nobody says that there is anything. */
  readonly look: () => Promise<boolean>
  readonly warn: (message: string, error: unknown) => void
}

/** Looks when it is woken, one look at a time, and again after a while for as long as there is something to see. */
export class Looking {
  readonly #options: LookingOptions
  #isLooking = false
  #again = false
  #closed = false
  #cancelNext = () => {}

  constructor(options: LookingOptions) {
    this.#options = options
  }

  /** There may be something to see. */
  wake(): void {
    if (this.#closed) return
    if (this.#isLooking) {
      this.#again = true
      return
    }
    this.#isLooking = true
    this.#cancelNext()
    void this.#look()
  }

  /** Looks no more. Idempotent. */
  close(): void {
    this.#closed = true
    this.#cancelNext()
  }

  async #look(): Promise<void> {
    const { clock, look, warn } = this.#options
    const startedMs = performance.now()
    const later = await look().catch((error) => {
      if (!this.#closed) warn('could not look at a queue', error)
      return true
    })
    this.#isLooking = false
    if (this.#closed) return
    if (this.#again) {
      this.#again = false
      this.wake()
    } else if (later) {
      // A look at a very long queue takes a while: it has a small part of the time.
      const waitMs = Math.max(FUNCTION_LIMITS.lookMs, 20 * (performance.now() - startedMs))
      this.#cancelNext = clock.after(waitMs, () => this.wake())
    }
  }
}
