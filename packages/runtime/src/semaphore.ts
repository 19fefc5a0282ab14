/** Lets at most `size` holders in at once; the others wait in order. */
export class Semaphore {
  readonly size: number
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(size: number) {
    this.size = size
    this.#free = size
  }

  get held(): number {
    return this.size - this.#free
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Runs `work` when there is room. Aborting `signal` gives up the place in the queue, never the work itself. */
  async use<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted()
    if (this.#free > 0) this.#free--
    else await this.#turn(signal)
    try {
      return await work()
    } finally {
      this.#release()
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        this.#waiting.delete(enter)
        reject(signal?.reason)
      }
      this.#waiting.add(enter)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  /** A place goes straight to the next in line, so nobody can slip in between. */
  #release(): void {
    const [next] = this.#waiting
    if (!next) {
      this.#free++
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
