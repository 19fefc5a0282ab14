import { toError } from '../connection/failure.ts'

/**
 * What a process has to do with a run: it works on it, or only reads it.
 *
 * `working` ends when the part is closed, quietly; `failed` is aborted with what this process could not do, or with the reason of
 * whoever wanted it to stop, and ends `working` too.
 */
export class RunPart {
  readonly #working = new AbortController()
  readonly #failed = new AbortController()
  readonly #releases: (() => void)[] = []
  #isTold = false
  /** Whether the run ends with the block that has it, or this process only leaves. */
  readonly cancels: boolean

  /** Fails with the first of these. */
  constructor(atEnd: 'cancels' | 'leaves', ...sources: (AbortSignal | undefined)[]) {
    this.cancels = atEnd === 'cancels'
    for (const source of sources) {
      if (!source) continue
      const follow = () => this.fail(source.reason)
      if (source.aborted) follow()
      else {
        source.addEventListener('abort', follow, { once: true })
        this.#releases.push(() => source.removeEventListener('abort', follow))
      }
    }
  }

  get working(): AbortSignal {
    return this.#working.signal
  }

  get failed(): AbortSignal {
    return this.#failed.signal
  }

  /** A failure that nobody was told of yet; whoever asks is told. */
  takeUntold(): Error | undefined {
    if (this.#isTold || !this.#failed.signal.aborted) return undefined
    this.#isTold = true
    return toError(this.#failed.signal.reason)
  }

  /** Throws the failure. */
  check(): void {
    if (!this.#failed.signal.aborted) return
    this.#isTold = true
    throw toError(this.#failed.signal.reason)
  }

  /** After the end it fails nobody. */
  fail(error: unknown): void {
    if (this.#working.signal.aborted) return
    this.#failed.abort(error)
    this.close()
  }

  /** This process has no more part in it. Idempotent. */
  close(): void {
    for (const release of this.#releases.splice(0)) release()
    this.#working.abort(new Error('this process left the run'))
  }
}
