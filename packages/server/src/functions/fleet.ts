/**
 * The containers of one queue: as many as are wanted come up, those that have nothing to do for long go. Each has so many slots.
 */
import type { Clock } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { Container } from './container.ts'
import { FUNCTION_LIMITS } from './limits.ts'

/** What a fleet is of. */
export type FleetMember = Pick<Container, 'gone' | 'close'>

export interface FleetOptions<C extends FleetMember> {
  readonly clock: Clock
  readonly open: (signal: AbortSignal) => Promise<C>
  /** Inputs at once in each. */
  readonly slots: number
  readonly idleMs: number
  /** Some came up, went, or could not come up. */
  readonly changed: () => void
  /** Something of ours failed that has no place in a result. */
  readonly warn: (message: string, error: unknown) => void
}

interface Member<C> {
  readonly container: C
  running: number
  idleSinceMs: number
  /** It takes nothing more. */
  retired: boolean
}

/** The use of one slot, until disposed. */
export interface Slot<C = Container> extends Disposable {
  readonly container: C
  /** What it worked on did not end in time: it takes nothing more, and ends with the last that it works on. */
  retire(): void
}

export class Fleet<C extends FleetMember = Container> {
  readonly #options: FleetOptions<C>
  readonly #members = new Set<Member<C>>()
  readonly #closing = new AbortController()
  readonly #ending = new Set<Promise<void>>()
  #wanted = 0
  #starting = 0
  #failures = 0
  #againAtMs = 0
  #failure: SandlotError | undefined

  constructor(options: FleetOptions<C>) {
    this.#options = options
  }

  get starting(): number {
    return this.#starting
  }

  get ready(): number {
    return this.#members.size
  }

  get running(): number {
    let running = 0
    for (const member of this.#members) running += member.running
    return running
  }

  /** Slots that an input could have now. */
  get free(): number {
    let free = 0
    for (const member of this.#members) free += this.#freeOf(member)
    return free
  }

  /** Why the last one did not come up; undefined once one has. */
  get failure(): SandlotError | undefined {
    return this.#failure
  }

  /** The function itself is at fault: no container of it will ever come up. */
  get isBroken(): boolean {
    const fault = this.#failure?.fault
    return (fault === 'caller' || fault === 'workload') && !this.isLate
  }

  /** It was not loaded in time, which it may be the next time. */
  get isLate(): boolean {
    return this.#failure?.code === 'function_timeout'
  }

  /** A function that was at fault may be mended, or what it starts from: it is tried anew. */
  tryAgain(): void {
    this.#failure = undefined
    this.#failures = 0
    this.#againAtMs = 0
    this.#grow()
  }

  /** Containers in a row that did not come up by no fault of the function. */
  get failures(): number {
    return this.#failures
  }

  /** How many there should be from now on. More come up at once; fewer only as they fall idle. */
  want(count: number): void {
    this.#wanted = count
    this.#grow()
    this.#shrink()
  }

  /** Of this container, or of the one with the least to do. */
  take(of?: C): Slot<C> | undefined {
    let best: Member<C> | undefined
    for (const member of this.#members) {
      if (of && member.container !== of) continue
      if (this.#freeOf(member) > 0 && (!best || member.running < best.running)) best = member
    }
    if (!best) return undefined
    const member = best
    member.running += 1
    let held = true
    return {
      container: member.container,
      retire: () => {
        member.retired = true
      },
      [Symbol.dispose]: () => {
        if (!held) return
        held = false
        member.running -= 1
        member.idleSinceMs = this.#options.clock.now()
        if (member.retired && member.running === 0) this.#end(member)
        this.#options.changed()
      },
    }
  }

  /** Ends all. */
  async close(): Promise<void> {
    this.#closing.abort(new SandlotError('cancelled', 'the queue is closed'))
    for (const member of this.#members) this.#end(member)
    await Promise.allSettled(this.#ending)
  }

  #freeOf({ retired, running }: Member<C>): number {
    return retired ? 0 : this.#options.slots - running
  }

  #grow(): void {
    const { clock } = this.#options
    if (this.#closing.signal.aborted || this.isBroken || clock.now() < this.#againAtMs) return
    const alive = [...this.#members].filter(({ retired }) => !retired).length
    const missing = this.#wanted - alive - this.#starting
    const more = Math.min(missing, FUNCTION_LIMITS.startingAtOnce - this.#starting)
    for (let count = 0; count < more; count++) {
      this.#starting += 1
      this.#track(this.#start())
    }
  }

  async #start(): Promise<void> {
    const { clock, open, changed } = this.#options
    try {
      const container = await open(this.#closing.signal)
      const member = { container, running: 0, idleSinceMs: clock.now(), retired: false }
      this.#failure = undefined
      this.#failures = 0
      this.#members.add(member)
      if (this.#closing.signal.aborted) this.#end(member)
      else void container.gone.then(() => this.#end(member))
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#failed(error)
    } finally {
      this.#starting -= 1
      changed()
    }
  }

  #failed(error: unknown): void {
    const { clock, warn } = this.#options
    const failure = error instanceof SandlotError ? error : undefined
    this.#failure = failure ?? new SandlotError('internal', 'a container did not come up')
    if (failure?.fault !== 'capacity') this.#failures += 1
    const waitMs = FUNCTION_LIMITS.againMs * 2 ** Math.min(this.#failures, 10)
    this.#againAtMs = clock.now() + Math.min(waitMs, FUNCTION_LIMITS.againMsMax)
    if (!this.isBroken) warn('a container of a function did not come up', error)
  }

  #shrink(): void {
    const idleAtMs = this.#options.clock.now() - this.#options.idleMs
    for (const member of this.#members) {
      if (this.#members.size <= this.#wanted) return
      if (member.running === 0 && member.idleSinceMs <= idleAtMs) this.#end(member)
    }
  }

  /** Once. */
  #end(member: Member<C>): void {
    if (!this.#members.delete(member)) return
    member.retired = true
    this.#track(
      member.container
        .close()
        .catch((error) => this.#options.warn('a container could not be ended', error)),
    )
    this.#options.changed()
  }

  #track(work: Promise<void>): void {
    this.#ending.add(work)
    void work.finally(() => this.#ending.delete(work))
  }
}
