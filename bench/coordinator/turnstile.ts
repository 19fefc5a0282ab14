/** Lets episodes wait until as many are in flight as are wanted; then the one that waited longest goes for each that comes. */
export class Turnstile {
  /** Resolves when as many wait as were wanted. */
  readonly full: Promise<void>
  readonly #wanted: number
  readonly #waiting: (() => void)[] = []
  readonly #full = Promise.withResolvers<void>()
  #open = false
  #coming: number

  /** `wanted` in flight; `total` come in all, and with the last one nobody waits any more. */
  constructor(wanted: number, total: number) {
    this.#wanted = wanted
    this.#coming = total
    this.full = this.#full.promise
  }

  /** From now on those go who are more than wanted. */
  open(): void {
    this.#open = true
    this.#letGo()
  }

  /** Calls `go` when it is this one's turn. */
  enter(go: () => void): void {
    this.#coming -= 1
    this.#waiting.push(go)
    if (this.#waiting.length === this.#wanted) this.#full.resolve()
    if (this.#open) this.#letGo()
  }

  #letGo(): void {
    const keep = this.#coming > 0 ? this.#wanted - 1 : 0
    const leaving = this.#waiting.splice(0, Math.max(0, this.#waiting.length - keep))
    for (const go of leaving) go()
  }
}
