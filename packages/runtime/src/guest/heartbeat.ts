export interface HeartbeatTimes {
  /** Nothing came for so long: a ping is sent. */
  readonly quietMs: number
  /** Nothing came for so long: the guest is lost. */
  readonly silentMs: number
}

/**
 * Notices a guest that says nothing any more. It counts its own ticks instead of reading a clock, so that a daemon that
 * was stopped itself for a while doesn't take its own absence for the guest's.
 */
export class Heartbeat {
  readonly #times: HeartbeatTimes
  readonly #calls: { ping: () => void; silent: (forMs: number) => void }
  #timer: NodeJS.Timeout | undefined
  #quietTicks = 0

  constructor(times: HeartbeatTimes, calls: { ping: () => void; silent: (forMs: number) => void }) {
    this.#times = times
    this.#calls = calls
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#tick(), this.#times.quietMs).unref()
  }

  /** Something came from the guest. */
  heard(): void {
    this.#quietTicks = -1
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    this.#quietTicks++
    const forMs = this.#quietTicks * this.#times.quietMs
    if (this.#quietTicks === 0) return
    if (forMs >= this.#times.silentMs) this.#calls.silent(forMs)
    else this.#calls.ping()
  }
}
