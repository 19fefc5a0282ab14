import type { Clock } from '@sandlot/engine'
import { diskMediumOf, SandlotError } from '@sandlot/protocol'
import {
  type Blank,
  type CheckpointSource,
  DriverError,
  type RuntimeDriver,
} from '@sandlot/runtime'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../../limits.ts'
import type { Checkpoints } from '../checkpoints.ts'
import type { Creations } from '../creations.ts'
import type { Room } from '../room.ts'
import { Demand } from './demand.ts'
import { numbersOf, type PoolNumbers } from './numbers.ts'
import { share } from './share.ts'
import { Shelf, type ShelfOptions, type TakeCounts } from './shelf.ts'
import { type Kit, WaitingBlanks, type Wanted } from './waiting-blanks.ts'
import { WaitingCopies } from './waiting-copies.ts'

export interface PoolSettings {
  /** Blanks that wait as long as there is any demand. 0: nothing ever waits. */
  readonly min: number
  /** All that wait together. */
  readonly max: number
  /** Without any demand for so long nothing waits. Milliseconds. */
  readonly idleMs: number
}

/** Saved memory of which copies may wait. */
export interface MemoryAhead extends Omit<CheckpointSource, 'directory'> {
  /** Its name among the checkpoints. */
  readonly checkpoint: string
}

export interface PoolOptions {
  readonly driver: RuntimeDriver
  readonly creations: Creations
  readonly checkpoints: Checkpoints
  readonly room: Room
  readonly clock: Clock
  readonly log: Logger
  readonly settings: PoolSettings
  /** How many had nothing to do since it was asked last. */
  readonly idleProcessors: () => number
}

/**
 * Sandboxes that are started ahead of need: blanks on one shelf, and for each saved memory that is asked for a shelf of copies, which are held
 * until they are taken. Each shelf follows its demand; all together keep within a share of the memory, and never take what sandboxes
 * with an owner could have. Whoever finds none starts one without waiting.
 */
export class SandboxPool {
  readonly #options: PoolOptions
  readonly #blanks: Shelf<Kit, Wanted>
  readonly #copies = new Map<string, Shelf<undefined, undefined>>()
  readonly #blanksTaken: TakeCounts = { hits: 0, misses: 0, failures: 0 }
  readonly #copiesTaken: TakeCounts = { hits: 0, misses: 0, failures: 0 }
  #open = false
  /** Somebody has just taken one. */
  #holding = false
  /** How many more than the least may be started until the next look. */
  #budget: number
  /** Whose turn it is to be started. */
  #turn = 0
  #cancelLook: (() => void) | undefined

  constructor(options: PoolOptions) {
    this.#options = options
    // Without hot mounting there is nothing to do with a blank.
    const min = options.driver.capabilities.hotMount ? options.settings.min : 0
    this.#blanks = this.#shelf(min, {
      what: 'a blank',
      counts: this.#blanksTaken,
      stock: new WaitingBlanks(),
      start: (kit, signal) => options.driver.createBlank({ ...kit, signal }),
    })
    this.#blanks.bytes = SERVER_LIMITS.blankBytes
    this.#budget = this.#nextBudget()
    // Whoever has just got room is about to take one.
    options.room.onUse = () => this.#hold()
    options.checkpoints.onRemove = (name) => this.#drop(name)
  }

  /** How many blanks wait at first. */
  get first(): number {
    return this.#options.settings.min
  }

  /** Of blanks. */
  get numbers(): PoolNumbers {
    return numbersOf([this.#blanks], this.#blanksTaken)
  }

  /** Of copies of saved memory. */
  get copies(): PoolNumbers {
    return numbersOf([...this.#copies.values()], this.#copiesTaken)
  }

  /** What those that wait take of the machine's memory, and at the most may take now. */
  get bytes(): { readonly used: number; readonly most: number } {
    return { used: this.#usedBytes, most: this.#bounds.bytes }
  }

  /** Whether a sandbox of this host id waits in it. */
  holds(hostId: string): boolean {
    return this.#shelves.some((shelf) => shelf.holds(hostId))
  }

  /** Begins to fill, and keeps to the demand. */
  fill(): void {
    this.#open = true
    this.#blanks.demand.touch(this.#options.clock.now())
    this.look()
  }

  /** A blank that can become what is wanted; its place is filled again, a little later. */
  take(wanted: Wanted): Blank | undefined {
    const shelf = this.#shelfOfBlanks
    return shelf && this.#take(shelf, wanted)
  }

  /** The same for a copy of saved memory. */
  takeCopy(memory: MemoryAhead): Blank | undefined {
    const shelf = this.#shelfOf(memory)
    return shelf && this.#take(shelf, undefined)
  }

  /** `count` more blanks, or copies, are about to be taken. Takes the place of what was announced under this name before. */
  expect(name: string, count: number, memory?: MemoryAhead): void {
    const shelf = memory ? this.#shelfOf(memory) : this.#shelfOfBlanks
    if (!shelf) return
    shelf.demand.expect(name, count, this.#options.clock.now())
    this.look()
  }

  /** Brings what waits in line with what is wanted and what there is room for. Cheap. */
  look(): void {
    if (!this.#open) return
    const nowMs = this.#options.clock.now()
    if (this.#options.room.used.sandboxes > 0) this.#blanks.demand.touch(nowMs)
    for (const [name, shelf] of this.#copies) if (shelf.isBare(nowMs)) this.#copies.delete(name)
    const shelves = this.#shelves
    const wishes = shelves.map((shelf) => ({ wanted: shelf.wanted(nowMs), bytes: shelf.bytes }))
    const given = share(wishes, this.#bounds)
    for (const [index, shelf] of shelves.entries()) shelf.keep(given[index] ?? 0)
    if (!this.#holding) this.#refill(shelves)
    if (shelves.every((shelf) => shelf.isBare(nowMs))) this.#sleep()
    else this.#lookAgain()
  }

  /** Stops filling, and ends what waits. Idempotent. */
  async close(): Promise<void> {
    this.#open = false
    this.#sleep()
    await Promise.all(this.#shelves.map((shelf) => shelf.close()))
  }

  get #usedBytes(): number {
    return this.#shelves.reduce((sum, { ready, starting, bytes }) => {
      const count = ready + starting
      return count === 0 ? sum : sum + count * bytes
    }, 0)
  }

  get #isOn(): boolean {
    return this.#options.settings.min > 0
  }

  get #shelves(): readonly (Shelf<Kit, Wanted> | Shelf<undefined, undefined>)[] {
    return [this.#blanks, ...this.#copies.values()]
  }

  get #bounds(): { readonly bytes: number; readonly count: number } {
    const { room, settings } = this.#options
    const { size, used, memory } = room
    const free = Math.max(0, size.memoryBytes - used.memoryBytes)
    // Of what there is, sandboxes with an owner can have as much as waits.
    const half = Math.max(0, (memory.leftBytes + this.#usedBytes) / 2)
    return {
      bytes: Math.min(size.memoryBytes * SERVER_LIMITS.poolMemoryShare, free, half),
      count: Math.min(settings.max, size.sandboxes - used.sandboxes),
    }
  }

  /** Beyond the least one of each kind in turn, from look to look, so that none waits for all of another. */
  #refill(shelves: readonly Shelf[]): void {
    for (let idle = 0; idle < shelves.length; idle++) {
      const one = Math.min(1, this.#budget)
      const started = one - (shelves[this.#turn % shelves.length] as Shelf).refill(one)
      this.#budget -= started
      if (started > 0) idle = -1
      this.#turn += 1
    }
  }

  #take<K, W>(shelf: Shelf<K, W>, wanted: W): Blank | undefined {
    shelf.demand.taken(this.#options.clock.now())
    const blank = shelf.take(wanted)
    this.#hold()
    return blank
  }

  get #shelfOfBlanks(): Shelf<Kit, Wanted> | undefined {
    return this.#isOn && this.#options.driver.capabilities.hotMount ? this.#blanks : undefined
  }

  #shelfOf(memory: MemoryAhead): Shelf<undefined, undefined> | undefined {
    const { checkpoints, driver } = this.#options
    if (!this.#isOn || !driver.capabilities.memorySnapshot) return undefined
    // A copy has its files at once, and of the disk nothing is taken that was not promised to somebody.
    if (diskMediumOf(memory.limits) === 'disk') return undefined
    const { checkpoint } = memory
    const found = this.#copies.get(checkpoint)
    if (found) return found
    const shelf = this.#shelf(0, {
      what: 'a copy of saved memory',
      counts: this.#copiesTaken,
      stock: new WaitingCopies(),
      start: (_, signal) => this.#startCopy(memory, signal),
    })
    this.#copies.set(checkpoint, shelf)
    const measured = (bytes: number) => {
      shelf.bytes = bytes + SERVER_LIMITS.copyBytes
      this.look()
    }
    void checkpoints.sizeBytes(checkpoint).then(measured, () => this.#copies.delete(checkpoint))
    return shelf
  }

  #shelf<K, W>(
    min: number,
    kind: Pick<ShelfOptions<K, W>, 'what' | 'counts' | 'stock' | 'start'>,
  ): Shelf<K, W> {
    const { driver, creations, clock, log, settings } = this.#options
    const { burstMs, expectMs } = SERVER_LIMITS
    const judged = { min, idleMs: settings.idleMs, burstMs, expectMs }
    const demand = new Demand(judged, clock.now())
    const parts = { driver, creations, clock, log, demand, isFinal, changed: () => this.look() }
    return new Shelf({ ...parts, ...kind })
  }

  /** Saved memory is about to go: resolves when none of its copies waits. */
  async #drop(checkpoint: string): Promise<void> {
    const shelf = this.#copies.get(checkpoint)
    this.#copies.delete(checkpoint)
    await shelf?.close()
    this.look()
  }

  async #startCopy(memory: MemoryAhead, signal: AbortSignal): Promise<Blank> {
    const { checkpoint: name, layers, limits } = memory
    const { checkpoints, driver } = this.#options
    using _ = await checkpoints.hold(name)
    const checkpoint = { directory: checkpoints.path(name), layers, limits }
    return await driver.createBlank({ checkpoint, signal })
  }

  /**
   * Whoever took one is about to use it, and a start would take the processors from them. Further takes prolong nothing: under
   * steady use the pool is filled all the same.
   */
  #hold(): void {
    if (this.#holding) return
    this.#holding = true
    this.#options.clock.after(SERVER_LIMITS.refillDelayMs, () => {
      this.#holding = false
      this.look()
    })
  }

  /** Demand passes by itself. */
  #lookAgain(): void {
    this.#cancelLook ??= this.#options.clock.after(SERVER_LIMITS.poolLookMs, () => {
      this.#cancelLook = undefined
      this.#budget = this.#nextBudget()
      this.look()
    })
  }

  /** As many as processors that had nothing to do are likely to start, and one where all are busy. */
  #nextBudget(): number {
    const { poolLookMs, startProcessorMs } = SERVER_LIMITS
    return Math.max(1, Math.floor((this.#options.idleProcessors() * poolLookMs) / startProcessorMs))
  }

  #sleep(): void {
    this.#cancelLook?.()
    this.#cancelLook = undefined
  }
}

/** It is not tried again: this machine can't restore it, or it was deleted. */
function isFinal(error: unknown): boolean {
  if (error instanceof DriverError) return error.code === 'snapshot_incompatible'
  return error instanceof SandlotError && error.code === 'snapshot_unknown'
}
