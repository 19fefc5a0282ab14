import { type GpuNeed, SandlotError } from '@sandlot/protocol'
import { isOfModel, type MachineGpus, type RuntimeDriver } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'

/** GPUs of this machine, until given back. */
export interface HeldGpus extends Disposable {
  readonly names: readonly string[]
}

export interface GpuView {
  readonly name: string
  readonly model: string
  readonly held: boolean
}

interface Waiting {
  readonly need: GpuNeed
  readonly enter: (held: HeldGpus) => void
}

/**
 * Whole GPUs for sandboxes, each to one at a time. Who has which follows from the living sandboxes alone. Who asked first is served first,
 * as far as both could have the same device: a wait for one model holds up no other. What needs no GPU never comes here.
 */
export class GpuRoom {
  readonly #driver: Pick<RuntimeDriver, 'gpus'>
  #machine: MachineGpus = { devices: [], problems: [] }
  /** How many sandboxes have a device: more than one only where the machine was changed under them. */
  readonly #holders = new Map<string, number>()
  readonly #waiting: Waiting[] = []

  constructor(driver: Pick<RuntimeDriver, 'gpus'>) {
    this.#driver = driver
  }

  /** Looks at the machine anew: files of drivers change. */
  async measure(): Promise<void> {
    this.#machine = await this.#driver.gpus()
    this.#admit()
  }

  get all(): readonly GpuView[] {
    return this.#machine.devices.map((device) => ({ ...device, held: this.#isHeld(device.name) }))
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /**
   * @throws SandlotError `capacity` when there are none within `waitMs`; `invalid_request` when there never will be, with what there is
   */
  async take(
    need: GpuNeed,
    options: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<HeldGpus> {
    await this.measure()
    const never = this.never(need)
    if (never !== undefined) throw new SandlotError('invalid_request', never)
    options.signal.throwIfAborted()
    const found = this.#waiting.length === 0 ? this.#freeFor(need, this.#free()) : undefined
    if (found) return this.#hold(found)
    return await this.#wait(need, options)
  }

  /** Those of a sandbox that is there already. */
  occupy(names: readonly string[]): HeldGpus {
    return this.#hold(names)
  }

  /** How many sandboxes can have so many, in all or beside those that have some. */
  count(need: GpuNeed, what: 'all' | 'free'): number {
    const devices = what === 'all' ? this.#machine.devices.map(({ name }) => name) : this.#free()
    return Math.floor(this.#matching(need, devices).length / need.count)
  }

  /** Why this machine can never give so many; undefined where it can. */
  never(need: GpuNeed): string | undefined {
    if (this.count(need, 'all') > 0) return undefined
    const { devices, problems } = this.#machine
    const models = Map.groupBy(devices, ({ model }) => model)
    const has = [...models].map(([model, { length }]) => `${length} × ${model}`).join(', ')
    const wanted = need.type === undefined ? `${need.count}` : `${need.count} of ${need.type}`
    const said = problems.length > 0 ? `; ${problems.slice(0, 3).join('; ')}` : ''
    return `resources.gpu: ${wanted} are asked for, the machine has ${has || 'none'}${said}`
  }

  #wait(
    need: GpuNeed,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<HeldGpus> {
    if (waitMs <= 0 || this.#waiting.length >= SERVER_LIMITS.roomWaits) throw this.#none(need)
    const { promise, resolve, reject } = Promise.withResolvers<HeldGpus>()
    const waiting: Waiting = { need, enter: resolve }
    const leave = (error: unknown) => {
      const index = this.#waiting.indexOf(waiting)
      if (index < 0) return
      this.#waiting.splice(index, 1)
      reject(error)
      this.#admit()
    }
    const timer = setTimeout(() => leave(this.#none(need)), Math.min(waitMs, 2 ** 31 - 1))
    const onAbort = () => leave(signal.reason)
    signal.addEventListener('abort', onAbort)
    this.#waiting.push(waiting)
    this.#admit()
    return promise.finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    })
  }

  /** In their order; what one waits for is not given to those behind, so that many small wishes never starve a large one. */
  #admit(): void {
    let left = this.#free()
    for (const waiting of [...this.#waiting]) {
      const found = this.#freeFor(waiting.need, left)
      const gone = new Set(found ?? this.#matching(waiting.need, left))
      left = left.filter((name) => !gone.has(name))
      if (!found) continue
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
      waiting.enter(this.#hold(found))
    }
  }

  #hold(names: readonly string[]): HeldGpus {
    for (const name of names) this.#holders.set(name, (this.#holders.get(name) ?? 0) + 1)
    let held = true
    return {
      names,
      [Symbol.dispose]: () => {
        if (!held) return
        held = false
        for (const name of names) {
          const others = (this.#holders.get(name) ?? 1) - 1
          if (others > 0) this.#holders.set(name, others)
          else this.#holders.delete(name)
        }
        this.#admit()
      },
    }
  }

  #isHeld(name: string): boolean {
    return this.#holders.has(name)
  }

  #free(): readonly string[] {
    return this.#machine.devices.map(({ name }) => name).filter((name) => !this.#isHeld(name))
  }

  #matching({ type }: GpuNeed, names: readonly string[]): readonly string[] {
    const models = new Map(this.#machine.devices.map(({ name, model }) => [name, model]))
    return names.filter((name) => isOfModel(models.get(name) ?? '', type))
  }

  #freeFor(need: GpuNeed, names: readonly string[]): readonly string[] | undefined {
    const found = this.#matching(need, names).slice(0, need.count)
    return found.length === need.count ? found : undefined
  }

  #none(need: GpuNeed): SandlotError {
    const free = this.#matching(need, this.#free()).length
    const wanted = need.type === undefined ? 'GPUs' : `GPUs of ${need.type}`
    return new SandlotError(
      'capacity',
      `no ${wanted}: ${need.count} are asked for, ${free} of the machine’s are free`,
    )
  }
}
