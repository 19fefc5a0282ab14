/** Contents that a request names by their digests. Only what the daemon says that it lacks is sent. */
import type { ClientContext, Waiting } from '../connection/context.ts'
import { isCode } from '../connection/failure.ts'
import type { LocalBlob } from './blob.ts'

export class LocalContents implements AsyncDisposable {
  readonly #context: ClientContext
  readonly #waiting: Waiting
  readonly #blobs = new Map<string, LocalBlob>()
  readonly #sent = new Set<string>()

  constructor(context: ClientContext, waiting: Waiting) {
    this.#context = context
    this.#waiting = waiting
  }

  /** Keeps a content until the end; returns its digest. */
  async hold(blob: LocalBlob): Promise<string> {
    if (this.#blobs.has(blob.digest)) await blob[Symbol.asyncDispose]()
    else this.#blobs.set(blob.digest, blob)
    return blob.digest
  }

  /** Asks again once what was lacking is sent, each content once. */
  async supply<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        const wanted = this.#wanted(error)
        if (wanted.length === 0) throw error
        for (const blob of wanted) {
          await blob.send(this.#context, this.#waiting)
          this.#sent.add(blob.digest)
        }
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const blob of this.#blobs.values()) await blob[Symbol.asyncDispose]()
  }

  #wanted(error: unknown): LocalBlob[] {
    const named = isCode(error, 'blob_unknown') ? error.details?.blobs : undefined
    const digests: unknown[] = Array.isArray(named) ? named : []
    return [...this.#blobs.values()].filter(
      ({ digest }) => digests.includes(digest) && !this.#sent.has(digest),
    )
  }
}
