import type { Resources, SandlotError } from '@sandlot/protocol'
import { promisedDiskBytes } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import type { DiskRoom } from './disk-room.ts'
import type { GpuRoom, HeldGpus } from './gpu-room.ts'
import type { MemoryRoom } from './memory-room.ts'
import type { NodeCapacity } from './port.ts'
import { closed, full, neverFits } from './room-refusals.ts'

/** What a node has for sandboxes. Requests are counted against it, limits are not. */
export interface RoomSize {
  readonly cpus: number
  readonly memoryBytes: number
  readonly sandboxes: number
}

/** What sandboxes take of it. Disk is only what is not held in memory, and is counted in full: no file may find the disk full before its limit. */
export interface Need extends RoomSize {
  readonly diskBytes: number
  /** What it may take where there is more than what it was promised. */
  readonly limits: { readonly cpus: number; readonly memoryBytes: number }
}

/** Room of one sandbox, until disposed. */
export interface TakenRoom extends Disposable {
  /** Names of the GPUs that it has to itself. */
  readonly gpus: readonly string[]
}

interface RoomWait {
  readonly waitMs: number
  readonly signal: AbortSignal
}

const NOTHING: Need = {
  ...{ cpus: 0, memoryBytes: 0, sandboxes: 0, diskBytes: 0 },
  limits: { cpus: 0, memoryBytes: 0 },
}

interface Waiting {
  readonly need: Need
  /** From then on nobody passes it, so that what becomes free adds up to what it needs. */
  readonly holdsAtMs: number
  readonly enter: () => void
}

/**
 * Room for sandboxes, given out in the order of asking. Who asks for more than there is lets others pass for the first half of its wait:
 * one that is far too large for now doesn't stop the rest.
 */
export class Room {
  readonly size: RoomSize
  readonly disk: DiskRoom
  readonly gpus: GpuRoom
  readonly memory: MemoryRoom
  #used = NOTHING
  readonly #waiting: Waiting[] = []
  #closed: string | undefined
  /** Told whenever another amount of it is used. */
  onUse: (() => void) | undefined

  constructor(
    size: RoomSize,
    machine: { readonly disk: DiskRoom; readonly gpus: GpuRoom; readonly memory: MemoryRoom },
  ) {
    this.size = size
    this.disk = machine.disk
    this.gpus = machine.gpus
    this.memory = machine.memory
    this.memory.onLook = () => this.#admit()
  }

  get used(): Need {
    return this.#used
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** From now on nobody is let in, for this reason; those who ask wait as if it were full. */
  close(why: string): void {
    this.#closed = why
  }

  /** Lets in again, those who wait first. */
  open(): void {
    this.#closed = undefined
    this.#admit()
  }

  /**
   * Room for one sandbox, until disposed.
   * @throws SandlotError `capacity` when there is none within `waitMs`; `invalid_request` when there never will be. DriverError
   * `unsupported` for a disk where there is none
   */
  async take(resources: Resources, options: RoomWait): Promise<TakenRoom> {
    const { gpu } = resources
    if (gpu === undefined) return withGpus(await this.#take(resources, options))
    // First what is scarce: who waits for it keeps nobody from the rest.
    const { waitMs, signal } = options
    const askedAtMs = performance.now()
    const gpus = await this.gpus.take(gpu, options)
    try {
      const leftMs = Math.max(0, waitMs - (performance.now() - askedAtMs))
      return withGpus(await this.#take(resources, { waitMs: leftMs, signal }), gpus)
    } catch (error) {
      gpus[Symbol.dispose]()
      throw error
    }
  }

  async #take(resources: Resources, options: RoomWait): Promise<Disposable> {
    const need = needOf(resources)
    if (need.diskBytes > 0) await this.disk.measure()
    const never = neverFits(need, this)
    if (never) throw never
    // Some may have become free since.
    if (!this.memory.admits(need.memoryBytes)) await this.memory.look()
    options.signal.throwIfAborted()
    if (this.#isHeld() || !this.#fits(need)) await this.#wait(need, options)
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
  occupy(resources: Resources, gpus: readonly string[] = []): TakenRoom {
    const need = needOf(resources)
    this.#use(need, 1)
    let given = true
    const room = {
      [Symbol.dispose]: () => {
        if (given) this.#use(need, -1)
        given = false
        this.#admit()
      },
    }
    return withGpus(room, gpus.length > 0 ? this.gpus.occupy(gpus) : undefined)
  }

  /** How many sandboxes of these resources there is room for, in all or on top of what is used. By the disk as last measured. */
  count(resources: Resources, what: 'all' | 'free'): number {
    const need = needOf(resources)
    if (what === 'free' && this.#closed !== undefined) return 0
    const used = what === 'all' ? NOTHING : this.#used
    const { memory } = this
    const leftBytes =
      what === 'all' ? Number.POSITIVE_INFINITY : memory.isLow ? 0 : memory.leftBytes
    const of = (size: number, taken: number, each: number) =>
      each === 0 ? Number.POSITIVE_INFINITY : Math.floor((size - taken) / each + 1e-9)
    const fit = Math.min(
      of(this.size.cpus, used.cpus, need.cpus),
      of(this.size.memoryBytes, used.memoryBytes, need.memoryBytes),
      of(leftBytes, 0, need.memoryBytes),
      of(this.disk.bytes, used.diskBytes, need.diskBytes),
      this.size.sandboxes - used.sandboxes,
      resources.gpu ? this.gpus.count(resources.gpu, what) : Number.POSITIVE_INFINITY,
    )
    return Math.max(0, fit)
  }

  /**
   * The same by what the machine has now, and why there never is room for any. Without any disk there is room for none that needs it.
   */
  async counts(resources: Resources): Promise<Pick<NodeCapacity, 'never' | 'sandboxes' | 'free'>> {
    const { gpu } = resources
    await this.disk.measure().catch(() => {})
    if (gpu) await this.gpus.measure().catch(() => {})
    const never = (gpu && this.gpus.never(gpu)) ?? neverFits(needOf(resources), this)?.message
    return {
      ...(never === undefined ? {} : { never }),
      sandboxes: this.count(resources, 'all'),
      free: this.count(resources, 'free'),
    }
  }

  #wait(
    need: Need,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    if (waitMs <= 0 || this.#waiting.length >= SERVER_LIMITS.roomWaits) throw this.#full(need)
    return new Promise((resolve, reject) => {
      const holdsAtMs = performance.now() + waitMs / 2
      const waiting: Waiting = { need, holdsAtMs, enter: () => settle() }
      const timer = setTimeout(() => settle(this.#full(need)), Math.min(waitMs, 2 ** 31 - 1))
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
    const ofDisk = this.#waiting.some(({ need }) => need.diskBytes > 0)
    const measured = ofDisk ? this.disk.measure() : undefined
    if (measured) void measured.catch(() => {}).then(() => this.#admitWaiting())
    else this.#admitWaiting()
  }

  #admitWaiting(): void {
    const nowMs = performance.now()
    for (const next of [...this.#waiting]) {
      if (this.#fits(next.need)) {
        this.#waiting.splice(this.#waiting.indexOf(next), 1)
        this.#use(next.need, 1)
        next.enter()
      } else if (next.holdsAtMs <= nowMs) return
    }
  }

  #isHeld(): boolean {
    const nowMs = performance.now()
    return this.#waiting.some(({ holdsAtMs }) => holdsAtMs <= nowMs)
  }

  #fits(need: Need): boolean {
    const { size } = this
    const used = this.#used
    return (
      this.#closed === undefined &&
      used.cpus + need.cpus <= size.cpus + 1e-9 &&
      used.memoryBytes + need.memoryBytes <= size.memoryBytes &&
      this.memory.admits(need.memoryBytes) &&
      used.sandboxes + need.sandboxes <= size.sandboxes &&
      (need.diskBytes === 0 || used.diskBytes + need.diskBytes <= this.disk.bytes)
    )
  }

  #use(need: Need, sign: 1 | -1): void {
    const used = this.#used
    // Rounded, so that thousands of tenths of a processor don't add up to a crumb.
    const cpus = (taken: number, more: number) => Math.round((taken + sign * more) * 1e6) / 1e6
    this.#used = {
      cpus: cpus(used.cpus, need.cpus),
      memoryBytes: used.memoryBytes + sign * need.memoryBytes,
      sandboxes: used.sandboxes + sign * need.sandboxes,
      diskBytes: used.diskBytes + sign * need.diskBytes,
      limits: {
        cpus: cpus(used.limits.cpus, need.limits.cpus),
        memoryBytes: used.limits.memoryBytes + sign * need.limits.memoryBytes,
      },
    }
    if (sign > 0) this.memory.promise(need.memoryBytes)
    this.onUse?.()
  }

  #full(need: Need): SandlotError {
    return this.#closed === undefined ? full(need, this) : closed(this.#closed)
  }
}

function withGpus(room: Disposable, gpus?: HeldGpus): TakenRoom {
  return {
    gpus: gpus?.names ?? [],
    [Symbol.dispose]: () => {
      room[Symbol.dispose]()
      gpus?.[Symbol.dispose]()
    },
  }
}

function needOf({ cpu, memory, disk }: Resources): Need {
  const diskBytes = promisedDiskBytes({ memoryBytes: memory.limit, diskBytes: disk })
  const limits = { cpus: cpu.limit, memoryBytes: memory.limit }
  return { cpus: cpu.request, memoryBytes: memory.request, sandboxes: 1, diskBytes, limits }
}
