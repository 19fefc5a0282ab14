import type { Blank } from '@sandlot/runtime'
import type { Stock } from './shelf.ts'

/** Copies of one saved memory that wait, longest first: each is as good as any other. */
export class WaitingCopies implements Stock<undefined, undefined> {
  readonly #ready = new Set<Blank>()

  get size(): number {
    return this.#ready.size
  }

  kitOfNext(): undefined {
    return undefined
  }

  add(blank: Blank): void {
    this.#ready.add(blank)
  }

  has(hostId: string): boolean {
    return [...this.#ready].some((blank) => blank.hostId === hostId)
  }

  remove(blank: Blank): boolean {
    return this.#ready.delete(blank)
  }

  take(): Blank | undefined {
    const [blank] = this.#ready
    if (blank) this.#ready.delete(blank)
    return blank
  }

  takeStale(): undefined {
    return undefined
  }

  takeSpare(): Blank | undefined {
    return this.take()
  }

  forgetWanted(): void {}
}
