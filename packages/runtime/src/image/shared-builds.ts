/** What a caller of a build brings. */
export interface BuildWait {
  /** Gets the lines for a person who waits. */
  readonly onLog?: ((line: string) => void) | undefined
  /** Gets what the programs of the build printed, line by line. */
  readonly onDetail?: ((line: string) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

export interface BuildRun {
  readonly signal: AbortSignal
  readonly log: (line: string) => void
  readonly detail: (line: string) => void
}

interface Running<T> {
  readonly controller: AbortController
  readonly waiters: Set<BuildWait>
  readonly result: Promise<T>
}

/**
 * One build a key, however many wait for it. A caller that is aborted leaves; the build is aborted with the last of them, and
 * that last one hears of it when everything has been cleaned up.
 */
export class SharedBuilds<T> {
  readonly #running = new Map<string, Running<T>>()

  async run(key: string, wait: BuildWait, build: (run: BuildRun) => Promise<T>): Promise<T> {
    wait.signal?.throwIfAborted()
    let running = this.#running.get(key)
    while (running?.controller.signal.aborted) {
      await running.result.catch(() => {})
      wait.signal?.throwIfAborted()
      running = this.#running.get(key)
    }
    running ??= this.#start(key, build)
    return await this.#join(running, wait)
  }

  /** Aborts what runs and waits for its end. */
  async close(reason: unknown): Promise<void> {
    const all = [...this.#running.values()]
    for (const running of all) running.controller.abort(reason)
    await Promise.allSettled(all.map((running) => running.result))
  }

  #start(key: string, build: (run: BuildRun) => Promise<T>): Running<T> {
    const controller = new AbortController()
    const waiters = new Set<BuildWait>()
    const log = (line: string): void => {
      for (const waiter of waiters) waiter.onLog?.(line)
    }
    const detail = (line: string): void => {
      for (const waiter of waiters) waiter.onDetail?.(line)
    }
    // One turn later, so that the first waiter hears every line.
    const result = Promise.resolve()
      .then(() => build({ signal: controller.signal, log, detail }))
      .finally(() => this.#running.delete(key))
    result.catch(() => {})
    const running = { controller, waiters, result }
    this.#running.set(key, running)
    return running
  }

  async #join(running: Running<T>, wait: BuildWait): Promise<T> {
    const left = Promise.withResolvers<never>()
    left.promise.catch(() => {})
    const leave = (): void => {
      running.waiters.delete(wait)
      const reason: unknown = wait.signal?.reason
      if (running.waiters.size > 0) {
        left.reject(reason)
        return
      }
      running.controller.abort(reason)
      running.result.catch(() => {}).then(() => left.reject(reason))
    }
    running.waiters.add(wait)
    wait.signal?.addEventListener('abort', leave, { once: true })
    try {
      return await Promise.race([running.result, left.promise])
    } finally {
      wait.signal?.removeEventListener('abort', leave)
      running.waiters.delete(wait)
    }
  }
}
