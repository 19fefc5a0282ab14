import type { Address } from './address.ts'
import { isStarting } from './failure.ts'
import { pause } from './pause.ts'

const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000

/** The tries of one thing while the daemon is away: longer and longer waits, and an end to them. */
export class Outage {
  readonly #address: Address
  #sinceMs: number | undefined
  #backoffMs = BACKOFF_FIRST_MS

  constructor(address: Address) {
    this.#address = address
  }

  /** Waits before the next try. Throws `error` when the daemon stayed away for too long, or the signal's reason. */
  async wait(error: unknown, signal?: AbortSignal): Promise<void> {
    if (isStarting(error)) this.#address.starting()
    this.#address.lost(error)
    this.#sinceMs ??= performance.now()
    if (performance.now() - this.#sinceMs >= this.#address.patienceMs) {
      this.#address.gaveUp()
      throw error
    }
    await pause(this.#backoffMs, signal)
    this.#backoffMs = Math.min(2 * this.#backoffMs, BACKOFF_MAX_MS)
  }

  /** It went well: the next failure is another outage. */
  over(): void {
    this.#sinceMs = undefined
    this.#backoffMs = BACKOFF_FIRST_MS
  }
}
