import type { Clock } from '../clock.ts'
import type { Revision } from '../kv.ts'
import { onAbort } from '../on-abort.ts'
import type { Journal } from './journal.ts'

/** A failed sweep is tried again after this time: entries are absent from their instant on, sweeping only tells and tidies. */
const RETRY_MS = 1_000

export interface KvExpiryOptions {
  readonly journal: Journal
  readonly clock: Clock
  readonly closing: AbortSignal
  /** An entry was removed because its time was over. */
  readonly expired: (key: string, revision: Revision) => void
}

/** Removes entries when their time to live is over. One timer, set to the earliest. */
export class KvExpiry {
  readonly #options: KvExpiryOptions
  #timer: { atMs: number; cancel: () => void } | undefined

  /** Sweeps at once, which also finds when the next is due. */
  constructor(options: KvExpiryOptions) {
    this.#options = options
    onAbort(options.closing, () => this.#disarm())
    this.#sweep()
  }

  due(atMs: number): void {
    const { clock, closing } = this.#options
    if (closing.aborted || (this.#timer && this.#timer.atMs <= atMs)) return
    this.#disarm()
    if (atMs <= clock.now()) {
      this.#sweep()
      return
    }
    const cancel = clock.after(atMs - clock.now(), () => {
      this.#timer = undefined
      this.#sweep()
    })
    this.#timer = { atMs, cancel }
  }

  #sweep(): void {
    const { journal, clock, expired } = this.#options
    const request = { nowMs: clock.now() }
    journal
      .submit('kv.expire', request, {
        committed: (result) => {
          for (const { key, revision } of result.expired) expired(key, revision)
          if (result.nextAtMs !== null) this.due(result.nextAtMs)
        },
      })
      .catch(() => this.due(clock.now() + RETRY_MS))
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
