import { FRAME_LIMITS } from './frame.ts'

const CREDIT_MAX = 0xffff_ffff

/** How much this side may still send on one channel. */
export class SendCredit {
  #left: number = FRAME_LIMITS.window

  get left(): number {
    return this.#left
  }

  /** Spends bytes that are there: `bytes` ≤ `left`. */
  spend(bytes: number): void {
    if (bytes > this.#left)
      throw new RangeError(`${bytes} bytes exceed the credit of ${this.#left}`)
    this.#left -= bytes
  }

  grant(bytes: number): void {
    this.#left = Math.min(this.#left + bytes, CREDIT_MAX)
  }
}

/** How much the peer may still send on one channel, and what it hasn't been told yet. */
export class ReceiveCredit {
  #window: number = FRAME_LIMITS.window
  #left: number = FRAME_LIMITS.window
  #consumed = 0

  /** Widens the window; gives the grant to send now. */
  widen(window: number): number {
    const more = Math.max(0, Math.min(window, CREDIT_MAX) - this.#window)
    this.#window += more
    this.#left += more
    return more
  }

  /** False: the peer sent more than it had credit for. */
  receive(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  /**
   * Counts bytes that left the buffer. Gives the grant to send when half the window is due, else 0, so that a busy channel
   * costs few credit frames and never runs dry.
   */
  consume(bytes: number): number {
    this.#consumed += bytes
    if (this.#consumed < this.#window / 2) return 0
    const grant = this.#consumed
    this.#consumed = 0
    this.#left += grant
    return grant
  }
}
