/**
 * Episodes wait here until all that are wanted in flight wait; from then on those that waited longest go, as many as leave the
 * wanted number waiting. So nearly all are in flight at any time, as with slow agents, and enough move to keep the coordinator
 * busy.
 */
export class Turnstile {
  /** Resolves when all that are in flight wait. */
  readonly full: Promise<void>
  readonly #inFlight: number
  readonly #moving: number
  #waiting: (() => void)[] = []
  /** Of those waiting, so many went already: an array that is cut for each that goes would be what is measured. */
  #gone = 0
  readonly #full = Promise.withResolvers<void>()
  #open = false
  #coming: number

  /** `total` come in all; with the last one nobody waits any more. */
  constructor(options: {
    readonly inFlight: number
    readonly moving: number
    readonly total: number
  }) {
    this.#inFlight = options.inFlight
    this.#moving = options.moving
    this.#coming = options.total
    this.full = this.#full.promise
  }

  /** All wait: now they may go. */
  open(): void {
    this.#open = true
    this.#letGo()
  }

  /** Calls `go` when it is this one's turn. */
  enter(go: () => void): void {
    this.#coming -= 1
    this.#waiting.push(go)
    if (this.#waiting.length - this.#gone === this.#inFlight) this.#full.resolve()
    if (this.#open) this.#letGo()
  }

  #letGo(): void {
    const keep = this.#coming > 0 ? this.#inFlight - this.#moving : 0
    while (this.#waiting.length - this.#gone > keep) {
      const go = this.#waiting[this.#gone++]
      go?.()
    }
    if (this.#gone < this.#inFlight) return
    this.#waiting = this.#waiting.slice(this.#gone)
    this.#gone = 0
  }
}
