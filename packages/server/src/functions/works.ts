import { QueueWork, type QueueWorkOptions } from './queue-work.ts'
import type { QueueRecord } from './records.ts'

/** Of all queues together, for metrics. */
export interface WorkNumbers {
  /** Inputs that containers work on. */
  readonly running: number
  readonly containers: { readonly starting: number; readonly ready: number }
  /** Queues whose containers don't come up. */
  readonly troubled: number
}

/** The work on all queues that have a function, also by definitions that were replaced, while those have something to do. */
export class Works {
  readonly #common: Omit<QueueWorkOptions, 'record' | 'warn'>
  readonly #warn: (queue: string, message: string, error: unknown) => void
  readonly #all = new Set<QueueWork>()
  #draining = false

  constructor(
    common: Omit<QueueWorkOptions, 'record' | 'warn'>,
    warn: (queue: string, message: string, error: unknown) => void,
  ) {
    this.#common = common
    this.#warn = warn
  }

  /** Undefined where the queue has no function. Nothing is looked for before it is woken. */
  begin(record: QueueRecord): QueueWork | undefined {
    const definition = record.function
    if (definition === null) return undefined
    const work = new QueueWork({
      ...this.#common,
      record: { ...record, function: definition },
      warn: (message, error) => this.#warn(record.name, message, error),
    })
    if (this.#draining) work.drain()
    this.#all.add(work)
    return work
  }

  /** It begins nothing more, and ends with the last that it works on. */
  retire(work: QueueWork): void {
    void work.retire().finally(() => this.#all.delete(work))
  }

  /** Ends all work on one queue, that of earlier definitions too. */
  async end(uid: string): Promise<void> {
    const ended = [...this.#all].filter((work) => work.uid === uid)
    await Promise.all(ended.map((work) => work.close()))
    for (const work of ended) this.#all.delete(work)
  }

  /** Cheap. */
  numbers(): WorkNumbers {
    const sum = (of: (work: QueueWork) => number) =>
      [...this.#all].reduce((total, work) => total + of(work), 0)
    return {
      running: sum(({ running }) => running),
      containers: {
        starting: sum(({ fleet }) => fleet.starting),
        ready: sum(({ fleet }) => fleet.ready),
      },
      troubled: sum(({ trouble }) => (trouble === undefined ? 0 : 1)),
    }
  }

  /** Begins nothing more. */
  drain(): void {
    this.#draining = true
    for (const work of this.#all) work.drain()
  }

  /** Ends all containers; what they work on is given back. */
  async close(): Promise<void> {
    this.drain()
    await Promise.allSettled([...this.#all].map((work) => work.close()))
  }
}
