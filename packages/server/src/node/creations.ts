import { SandlotError } from '@sandlot/protocol'

/** How one waits for its turn. */
export interface Turn {
  readonly signal: AbortSignal
  /** For how long. Default: until the signal aborts. */
  readonly waitMs?: number
}

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

  /**
   * Runs `start` when its turn has come.
   * @throws SandlotError `capacity` where it does not come in time
   */
  async run<T>(who: 'asked' | 'ahead', start: () => Promise<T>, turn: Turn): Promise<T> {
    await this.#turn(who === 'asked' ? this.#asked : this.#ahead, turn)
    try {
      return await start()
    } finally {
      this.#underWay -= 1
      this.#next()
    }
  }

  #turn(line: (() => void)[], { signal, waitMs }: Turn): Promise<void> {
    signal.throwIfAborted()
    if (this.#underWay < this.max && this.#asked.length === 0) {
      this.#underWay += 1
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const over = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
      }
      const enter = () => {
        over()
        this.#underWay += 1
        resolve()
      }
      const leave = (why: unknown) => {
        over()
        line.splice(line.indexOf(enter), 1)
        reject(why)
      }
      const onAbort = () => leave(signal.reason)
      const onLate = () => leave(this.#noTurn())
      const timer = waitMs === undefined ? undefined : setTimeout(onLate, waitMs)
      line.push(enter)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  #noTurn(): SandlotError {
    const why = `others wait to be started, ${this.max} at once`
    return new SandlotError('capacity', `no turn for another sandbox: ${why}`, {
      hint: 'Ask again later. SANDLOT_CREATIONS sets how many are started at once.',
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
