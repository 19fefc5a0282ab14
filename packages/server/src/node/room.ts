import { formatSize, type Resources, SandlotError } from '@sandlot/protocol'
import { SERVER_LIMITS } from '../limits.ts'

/** What a node has for sandboxes. Requests are counted against it, limits are not. */
export interface RoomSize {
  readonly cpus: number
  readonly memoryBytes: number
  readonly sandboxes: number
}

interface Waiting {
  readonly need: RoomSize
  readonly enter: () => void
}

/** Room for sandboxes, given out in the order of asking. */
export class Room {
  readonly size: RoomSize
  #used: RoomSize = { cpus: 0, memoryBytes: 0, sandboxes: 0 }
  readonly #waiting: Waiting[] = []
  /** Told whenever another amount of it is used. */
  onUse: (() => void) | undefined

  constructor(size: RoomSize) {
    this.size = size
  }

  get used(): RoomSize {
    return this.#used
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /**
   * Room for one sandbox, until disposed.
   * @throws SandlotError `capacity` when there is none within `waitMs`; `invalid_request` when there never will be
   */
  async take(
    resources: Resources,
    options: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<Disposable> {
    const need = needOf(resources)
    this.#checkEver(need)
    options.signal.throwIfAborted()
    if (this.#waiting.length > 0 || !this.#fits(need)) await this.#wait(need, options)
    else this.#use(need, 1)
    let given = true
    return {
      [Symbol.dispose]: () => {
        if (!given) return
        given = false
        this.#use(need, -1)
        this.#admit()
      },
    }
  }

  /** Takes room for a sandbox that is there already, also beyond the size. */
  occupy(resources: Resources): Disposable {
    const need = needOf(resources)
    this.#use(need, 1)
    let given = true
    return {
      [Symbol.dispose]: () => {
        if (given) this.#use(need, -1)
        given = false
        this.#admit()
      },
    }
  }

  /** How many sandboxes of these resources there is room for, in all or on top of what is used. */
  count(resources: Resources, what: 'all' | 'free'): number {
    const need = needOf(resources)
    const used = what === 'all' ? { cpus: 0, memoryBytes: 0, sandboxes: 0 } : this.#used
    const of = (size: number, taken: number, each: number) =>
      each === 0 ? Number.POSITIVE_INFINITY : Math.floor((size - taken) / each + 1e-9)
    const fit = Math.min(
      of(this.size.cpus, used.cpus, need.cpus),
      of(this.size.memoryBytes, used.memoryBytes, need.memoryBytes),
      this.size.sandboxes - used.sandboxes,
    )
    return Math.max(0, fit)
  }

  #wait(
    need: RoomSize,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    if (waitMs <= 0 || this.#waiting.length >= SERVER_LIMITS.roomWaits) throw this.#full()
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { need, enter: () => settle() }
      const timer = setTimeout(() => settle(this.#full()), Math.min(waitMs, 2 ** 31 - 1))
      const onAbort = () => settle(signal.reason)
      const settle = (error?: unknown) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        if (error === undefined) return resolve()
        const index = this.#waiting.indexOf(waiting)
        if (index >= 0) this.#waiting.splice(index, 1)
        this.#admit()
        reject(error)
      }
      signal.addEventListener('abort', onAbort)
      this.#waiting.push(waiting)
    })
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next && this.#fits(next.need); next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#use(next.need, 1)
      next.enter()
    }
  }

  #fits(need: RoomSize): boolean {
    const { size } = this
    const used = this.#used
    return (
      used.cpus + need.cpus <= size.cpus + 1e-9 &&
      used.memoryBytes + need.memoryBytes <= size.memoryBytes &&
      used.sandboxes + need.sandboxes <= size.sandboxes
    )
  }

  #use(need: RoomSize, sign: 1 | -1): void {
    const used = this.#used
    // Rounded, so that thousands of tenths of a processor don't add up to a crumb.
    this.#used = {
      cpus: Math.round((used.cpus + sign * need.cpus) * 1e6) / 1e6,
      memoryBytes: used.memoryBytes + sign * need.memoryBytes,
      sandboxes: used.sandboxes + sign * need.sandboxes,
    }
    this.onUse?.()
  }

  #checkEver(need: RoomSize): void {
    if (need.cpus > this.size.cpus) {
      throw new SandlotError(
        'invalid_request',
        `resources.cpu: ${need.cpus} are asked for, the machine gives ${this.size.cpus} in all`,
      )
    }
    if (need.memoryBytes > this.size.memoryBytes) {
      throw new SandlotError(
        'invalid_request',
        `resources.memory: ${formatSize(need.memoryBytes)} are asked for, the machine gives ${formatSize(this.size.memoryBytes)} in all`,
      )
    }
  }

  #full(): SandlotError {
    const { cpus, memoryBytes, sandboxes } = this.#used
    return new SandlotError(
      'capacity',
      `no room for another sandbox: ${sandboxes} of ${this.size.sandboxes} sandboxes, ${cpus} of ${this.size.cpus} processors and ${formatSize(memoryBytes)} of ${formatSize(this.size.memoryBytes)} are taken`,
    )
  }
}

function needOf(resources: Resources): RoomSize {
  return { cpus: resources.cpu.request, memoryBytes: resources.memory.request, sandboxes: 1 }
}
