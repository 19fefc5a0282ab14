/** What is being taken out of sandboxes, of all runs: a daemon that stops waits for none of it to be whole. */
export class LeavesUnderWay {
  readonly #hurry = new AbortController()
  readonly #all = new Set<Promise<unknown>>()

  /** Aborts when what is not taken yet is to be left. */
  get hurried(): AbortSignal {
    return this.#hurry.signal
  }

  async track<T>(taking: Promise<T>): Promise<T> {
    this.#all.add(taking)
    try {
      return await taking
    } finally {
      this.#all.delete(taking)
    }
  }

  /** Resolves when nothing is under way any more. */
  async hurry(): Promise<void> {
    this.#hurry.abort(new Error('the daemon was stopped'))
    await Promise.allSettled(this.#all)
  }
}
