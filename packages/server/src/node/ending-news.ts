import { SERVER_LIMITS } from '../limits.ts'
import type { SandboxEnded } from './port.ts'

interface Reader {
  readonly waiting: SandboxEnded[]
  wake: () => void
}

/** Tells every reader of each ending from its own beginning on. A reader that falls far behind misses the oldest. */
export class EndingNews {
  readonly #readers = new Set<Reader>()

  tell(ended: SandboxEnded): void {
    for (const reader of this.#readers) {
      reader.waiting.push(ended)
      if (reader.waiting.length > SERVER_LIMITS.endingsWaiting) reader.waiting.shift()
      reader.wake()
    }
  }

  /** Listens from this call on, not from the first `next`. Ends quietly when the signal aborts. */
  read(signal: AbortSignal): AsyncIterable<SandboxEnded> {
    const reader: Reader = { waiting: [], wake: () => {} }
    const readers = this.#readers
    readers.add(reader)
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
