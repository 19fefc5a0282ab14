import { Wake } from '../wake.ts'

/** One reader that waits at the end of a stream. */
export interface Tail {
  /** Woken by appends and by the deletion of the stream. */
  readonly news: Wake
  /** The stream was deleted since this tail began. */
  deleted: boolean
}

/** The live tails by stream. */
export class LogTails {
  readonly #tails = new Map<string, Set<Tail>>()

  add(stream: string): Tail {
    const tail: Tail = { news: new Wake(), deleted: false }
    const tails = this.#tails.get(stream)
    if (tails) tails.add(tail)
    else this.#tails.set(stream, new Set([tail]))
    return tail
  }

  remove(stream: string, tail: Tail): void {
    const tails = this.#tails.get(stream)
    tails?.delete(tail)
    if (tails?.size === 0) this.#tails.delete(stream)
  }

  wake(stream: string): void {
    for (const tail of this.#tails.get(stream) ?? []) tail.news.wake()
  }

  delete(stream: string): void {
    for (const tail of this.#tails.get(stream) ?? []) {
      tail.deleted = true
      tail.news.wake()
    }
  }
}
