import { SandlotError, type ServingState } from '@sandlot/protocol'

/**
 * Whether the daemon takes new work, and how much of it is under way.
 *
 * starting → serving → draining; never back.
 */
export class Serving {
  #state: ServingState = 'starting'
  #underWay = 0
  #idle: (() => void)[] = []

  get state(): ServingState {
    return this.#state
  }

  get underWay(): number {
    return this.#underWay
  }

  serve(): void {
    if (this.#state === 'starting') this.#state = 'serving'
  }

  drain(): void {
    this.#state = 'draining'
  }

  /** @throws SandlotError `draining` while it recovers what an earlier daemon left */
  checkStarted(): void {
    if (this.#state !== 'starting') return
    throw new SandlotError('draining', 'the daemon is starting', {
      hint: 'Wait a moment and try again.',
      // Who asks for the first time waits for what will come, and not for what goes.
      details: { starting: true },
    })
  }

  /**
   * For what lasts as long as its client wants: no drain waits for it.
   * @throws SandlotError `draining` unless the daemon serves
   */
  checkTakes({ admitted = false }: { readonly admitted?: boolean } = {}): void {
    this.checkStarted()
    if (this.#state === 'draining' && !admitted)
      throw new SandlotError('draining', 'the daemon is stopping')
  }

  /**
   * A piece of work begins; dispose what comes back when it has ended. `admitted`: it belongs to an attempt that a drain waits for,
   * and which could never end if its commands were refused.
   * @throws SandlotError `draining` unless the daemon serves
   */
  begin({ admitted = false }: { readonly admitted?: boolean } = {}): Disposable {
    this.checkTakes({ admitted })
    this.#underWay += 1
    let over = false
    return {
      [Symbol.dispose]: () => {
        if (over) return
        over = true
        this.#underWay -= 1
        if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve()
      },
    }
  }

  /** Resolves when no work is under way. */
  idle(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }
}
