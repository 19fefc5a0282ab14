import type { Pty } from 'sandlot'

/** What may wait to be typed: a paste is held up beyond it. */
const WAITING_BYTES = 256 * 2 ** 10

/** Types in order, as fast as the terminal takes it; meanwhile more can be said, up to a bound. */
export class Typing {
  readonly #pty: Pick<Pty, 'write'>
  readonly #hold: (on: boolean) => void
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #isTyping = false

  /** `hold`: told to say no more, and when to go on. */
  constructor(pty: Pick<Pty, 'write'>, hold: (on: boolean) => void) {
    this.#pty = pty
    this.#hold = hold
  }

  say(keys: Uint8Array): void {
    if (keys.length === 0) return
    this.#waiting.push(keys)
    this.#waitingBytes += keys.length
    if (this.#waitingBytes >= WAITING_BYTES) this.#hold(true)
    if (!this.#isTyping) void this.#type()
  }

  async #type(): Promise<void> {
    this.#isTyping = true
    while (this.#waiting.length > 0) {
      const keys = Buffer.concat(this.#waiting)
      this.#waiting = []
      // Keys that a broken connection took along are lost, as a person sees; how the terminal ends says its result.
      await this.#pty.write(keys).catch(() => undefined)
      const wasFull = this.#waitingBytes >= WAITING_BYTES
      this.#waitingBytes -= keys.length
      if (wasFull && this.#waitingBytes < WAITING_BYTES) this.#hold(false)
    }
    this.#isTyping = false
  }
}
