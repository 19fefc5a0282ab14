import { SERVER_LIMITS } from '../limits.ts'

interface Reader<T> {
  readonly waiting: T[]
  wake: () => void
}

/** Tells every reader of each thing that happens, from its own beginning on. A reader that falls far behind misses the oldest. */
export class News<T> {
  readonly #readers = new Set<Reader<T>>()
  readonly #heard = Promise.withResolvers<void>()

  /** Resolves when somebody has begun to listen: what is told before, nobody hears. */
  get heard(): Promise<void> {
    return this.#heard.promise
  }

  tell(item: T): void {
    for (const reader of this.#readers) {
      reader.waiting.push(item)
      if (reader.waiting.length > SERVER_LIMITS.newsWaiting) reader.waiting.shift()
      reader.wake()
    }
  }

  /** Listens from this call on, not from the first `next`. Ends quietly when the signal aborts. */
  read(signal: AbortSignal): AsyncIterable<T> {
    const reader: Reader<T> = { waiting: [], wake: () => {} }
    const readers = this.#readers
    readers.add(reader)
    this.#heard.resolve()
    const leave = () => {
      readers.delete(reader)
      reader.wake()
    }
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    return (async function* () {
      try {
        while (!signal.aborted) {
          const next = reader.waiting.shift()
          if (next) yield next
          else await new Promise<void>((resolve) => (reader.wake = resolve))
        }
      } finally {
        signal.removeEventListener('abort', leave)
        leave()
      }
    })()
  }
}
