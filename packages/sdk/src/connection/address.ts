import type { Endpoint } from '../config.ts'

/** How long a daemon that answered before may stay away, for example while it is started again. */
const AWAY_MS = 120_000

/** Where the daemon of one client is, and whether it has been met: shared by all that speak to it. */
export class Address {
  readonly #lookUp: () => Promise<Endpoint>
  #found: Promise<Endpoint> | undefined
  #met = false

  constructor(lookUp: () => Promise<Endpoint>) {
    this.#lookUp = lookUp
  }

  /** Looked up when first asked for, and again after an outage: a daemon that was started again may be elsewhere. */
  endpoint(): Promise<Endpoint> {
    this.#found ??= this.#lookUp().catch((error) => {
      this.#found = undefined
      throw error
    })
    return this.#found
  }

  /** How long an outage is waited out. Not at all before the first answer: then there is likely no daemon. */
  get patienceMs(): number {
    return this.#met ? AWAY_MS : 0
  }

  /** It answered. */
  met(): void {
    this.#met = true
  }

  /** It didn't answer. */
  lost(): void {
    this.#found = undefined
  }

  /** It stayed away for as long as patience goes: whoever asks next is told at once. */
  gaveUp(): void {
    this.#met = false
  }
}
