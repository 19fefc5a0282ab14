import type { Image } from './image.ts'

export interface Pinned {
  held: number
  /** Known as soon as one of the pins has read it. */
  image: Image | undefined
}

/** Images that something uses, counted. Pins end with this process. */
export class Pins {
  readonly #pinned = new Map<string, Pinned>()

  has(id: string): boolean {
    return this.#pinned.has(id)
  }

  hold(id: string): Disposable & { readonly pinned: Pinned } {
    const pinned = this.#pinned.get(id) ?? { held: 0, image: undefined }
    this.#pinned.set(id, pinned)
    pinned.held += 1
    let held = true
    return {
      pinned,
      [Symbol.dispose]: () => {
        if (held) pinned.held -= 1
        held = false
        if (pinned.held === 0) this.#pinned.delete(id)
      },
    }
  }
}
