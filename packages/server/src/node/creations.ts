/**
 * How many sandboxes are being started at once. Each costs a fixed amount of processor time, so more at once only makes all of
 * them late. Those that somebody waits for go before the pool's.
 */
export class Creations {
  readonly max: number
  #underWay = 0
  readonly #asked: (() => void)[] = []
  readonly #ahead: (() => void)[] = []

  constructor(max: number) {
    this.max = max
  }

  get underWay(): number {
    return this.#underWay
  }

  get waiting(): number {
    return this.#asked.length
  }

  /** Runs `start` when its turn has come. */
  async run<T>(who: 'asked' | 'ahead', start: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#turn(who === 'asked' ? this.#asked : this.#ahead, signal)
    try {
      return await start()
    } finally {
      this.#underWay -= 1
      this.#next()
    }
  }

  #turn(line: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (this.#underWay < this.max && this.#asked.length === 0) {
      this.#underWay += 1
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener('abort', onAbort)
        this.#underWay += 1
        resolve()
      }
      const onAbort = () => {
        line.splice(line.indexOf(enter), 1)
        reject(signal?.reason)
      }
      line.push(enter)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  #next(): void {
    while (this.#underWay < this.max) {
      const enter = this.#asked.shift() ?? this.#ahead.shift()
      if (!enter) return
      enter()
    }
  }
}
