import { setTimeout as pause } from 'node:timers/promises'
import type { NetworkLimitsInForce } from '@sandlot/protocol'
import { NETWORK_LIMITS } from './limits.ts'
import { tooMuch } from './refusal.ts'

const MINUTE_MS = 60_000
const SECOND_MS = 1_000

/** What a sandbox may do of what its policy allows: connections in a minute, bytes in all and in a second. */
export class Allowance {
  readonly #now: () => number
  #limits: NetworkLimitsInForce
  #spentBytes: number
  /** Connections that may come at once; filled again evenly over a minute. */
  #free: number
  #filledAtMs: number
  /** Until then all that may pass has passed. */
  #passedUntilMs = 0

  /** `spentBytes`: those of its life before. `now`: milliseconds that only grow. */
  constructor(limits: NetworkLimitsInForce, spentBytes: number, now = () => performance.now()) {
    this.#now = now
    this.#limits = limits
    this.#spentBytes = spentBytes
    this.#free = limits.connectionsPerMinute
    this.#filledAtMs = now()
  }

  get limits(): NetworkLimitsInForce {
    return this.#limits
  }

  /** Whether bytes have to be counted while they pass. */
  get metersBytes(): boolean {
    return this.#limits.bytes !== null || this.#limits.bytesPerSecond !== null
  }

  /** Bytes are used up. */
  get isSpent(): boolean {
    return this.#limits.bytes !== null && this.#spentBytes >= this.#limits.bytes
  }

  /** The most that is asked for by one `pass`. */
  get portionBytes(): number {
    const { bytesPerSecond } = this.#limits
    return bytesPerSecond === null
      ? Number.POSITIVE_INFINITY
      : Math.max(1, Math.floor(bytesPerSecond * NETWORK_LIMITS.paceShare))
  }

  /** `spentBytes`: all until now. */
  set(limits: NetworkLimitsInForce, spentBytes: number): void {
    this.#limits = limits
    this.#spentBytes = spentBytes
    this.#free = Math.min(this.#free, limits.connectionsPerMinute)
  }

  /** One more connection or request; false: not in this minute. */
  admit(): boolean {
    const { connectionsPerMinute } = this.#limits
    const nowMs = this.#now()
    const filled = ((nowMs - this.#filledAtMs) / MINUTE_MS) * connectionsPerMinute
    this.#free = Math.min(connectionsPerMinute, this.#free + filled)
    this.#filledAtMs = nowMs
    if (this.#free < 1) return false
    this.#free -= 1
    return true
  }

  /** Resolves when so many bytes, at most a portion, may pass. Rejects with a `Refusal` where they are more than is left. */
  async pass(bytes: number, signal: AbortSignal): Promise<void> {
    const { bytes: most, bytesPerSecond } = this.#limits
    if (most !== null && this.#spentBytes + bytes > most) {
      // What remains is too little for whoever comes next, too.
      this.#spentBytes = most
      throw tooMuch(most)
    }
    this.#spentBytes += bytes
    if (bytesPerSecond === null) return
    const nowMs = this.#now()
    const beganMs = Math.max(this.#passedUntilMs, nowMs - SECOND_MS * NETWORK_LIMITS.paceShare)
    this.#passedUntilMs = beganMs + (bytes / bytesPerSecond) * SECOND_MS
    const waitMs = this.#passedUntilMs - nowMs
    if (waitMs > 0) await pause(waitMs, undefined, { signal })
  }
}
