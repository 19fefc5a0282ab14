import type { Endpoint } from '../config.ts'
import type { Located } from './endpoint.ts'
import type { Notices } from './notices.ts'

/** How long a daemon that answered before may stay away, for example while it is started again. */
const AWAY_MS = 120_000

/** Where the daemon of one client is, and whether it has been met: shared by all that speak to it. */
export class Address {
  readonly #lookUp: () => Promise<Located>
  readonly notices: Notices
  #found: Promise<Located> | undefined
  #met = false

  constructor(lookUp: () => Promise<Located>, notices: Notices) {
    this.#lookUp = lookUp
    this.notices = notices
  }

  /** With the key. Throws `unauthorized` where there is none. */
  async endpoint(): Promise<Endpoint> {
    const found = await this.#locate()
    if (!('keyless' in found)) return found
    // One may be there the next time.
    this.#found = undefined
    throw found.keyless
  }

  /** For what needs no key. */
  async url(): Promise<string> {
    return (await this.#locate()).url
  }

  /** How long an outage is waited out. Not at all before the first answer: then there is likely no daemon. */
  get patienceMs(): number {
    return this.#met ? AWAY_MS : 0
  }

  /** It answered. */
  met(): void {
    this.#met = true
    this.notices.met()
  }

  /** It is there and will serve: worth waiting for, also for who has not met it before. */
  starting(): void {
    this.#met = true
  }

  /** It didn't answer, and is asked again. */
  lost(error: unknown): void {
    this.#found = undefined
    if (this.#met) this.notices.lost(error)
  }

  /** It stayed away for as long as patience goes: whoever asks next is told at once. */
  gaveUp(): void {
    this.#met = false
  }

  /** Looked up when first asked for, and again after an outage: a daemon that was started again may be elsewhere. */
  #locate(): Promise<Located> {
    this.#found ??= this.#lookUp().catch((error) => {
      this.#found = undefined
      throw error
    })
    return this.#found
  }
}
