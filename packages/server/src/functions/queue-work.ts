/** The work on one queue: containers follow what waits and runs; each task is leased for a free slot, begun, and settled. */
import type { Lease } from '@sandlot/engine'
import type { TaskError } from '@sandlot/protocol'
import { isTransient } from '../coordinator/engine-error.ts'
import { type Calling, callContainer } from './call-container.ts'
import type { ContainerSource } from './container.ts'
import { Fleet, type Slot } from './fleet.ts'
import { FUNCTION_LIMITS } from './limits.ts'
import { Looking } from './looking.ts'
import { messagesOf } from './names.ts'
import { renewLease } from './renew-lease.ts'
import { finish, giveBack, type Settling, settle } from './settle.ts'
import { type Delivery, readTask, type Task } from './task.ts'
import { type TryEnd, taskErrorOf } from './tries.ts'
import { wantedContainers } from './wanted.ts'

export interface QueueWorkOptions extends Settling, Calling {
  readonly record: Calling['record']
  readonly source: ContainerSource
  /** Something of ours failed that has no place in a result. */
  readonly warn: (message: string, error: unknown) => void
}

/** A message that this daemon has. `task` is there while a container may have its input. */
interface Held extends Delivery {
  task?: Task
}

export class QueueWork {
  readonly fleet: Fleet
  readonly #options: QueueWorkOptions
  readonly #messages: string
  readonly #held = new Map<string, Held>()
  readonly #works = new Set<Promise<void>>()
  readonly #looking: Looking
  /** It begins nothing more. */
  #draining = false
  #closed = false
  #serving = false
  /** Ends the wait for tasks when there is no slot for any. */
  #waiting = new AbortController()
  #emptied: (() => void) | undefined

  constructor(options: QueueWorkOptions) {
    this.#options = options
    const { record, clock, source, warn } = options
    const definition = record.function
    this.#messages = messagesOf(record.uid)
    this.#looking = new Looking({ clock, warn, look: () => this.#look() })
    this.fleet = new Fleet({
      clock,
      warn,
      slots: definition.concurrency,
      idleMs: record.autoscale.idleMs,
      changed: () => this.#changed(),
      open: (signal) =>
        source({ project: record.project, tags: { queue: record.name }, definition, signal }),
    })
  }

  /** Of its queue. */
  get uid(): string {
    return this.#options.record.uid
  }

  /** Inputs that are with a container, or about to be. */
  get running(): number {
    return this.#held.size
  }

  /** Why its containers don't come up. */
  get trouble(): string | undefined {
    return this.fleet.failure?.message
  }

  /** Something may have been put. */
  wake(): void {
    this.#looking.wake()
  }

  /** Begins nothing more. What runs goes on. */
  drain(): void {
    this.#draining = true
    this.#waiting.abort()
  }

  /** Begins nothing more, and closes when nothing runs any more. */
  async retire(): Promise<void> {
    this.drain()
    if (this.#held.size > 0) {
      await new Promise<void>((resolve) => {
        this.#emptied = resolve
      })
    }
    await this.close()
  }

  /** Ends the containers. What they work on is given back, as lost while it ran. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.drain()
    this.#emptied?.()
    this.#looking.close()
    const begun = [...this.#held.values()].flatMap(({ task }) => (task ? [task] : []))
    const given = begun.map((task) => {
      const { seen, lost, errors } = task.tries
      const tries = { errors, seen: seen + 1, lost: lost + 1 }
      return giveBack(task, tries, 0, this.#options)
    })
    await Promise.allSettled(given)
    await this.fleet.close()
    await Promise.allSettled(this.#works)
  }

  #changed(): void {
    if (this.#closed) return
    if (this.fleet.free === 0) this.#waiting.abort()
    else void this.#serve()
    if (this.fleet.ready === 0 || this.fleet.failure) this.wake()
  }

  /** Whether to look again after a while, though nobody says that there is anything. */
  async #look(): Promise<boolean> {
    const { engine, record } = this.#options
    const depth = await engine.queue.depth(this.#messages)
    if (this.#closed) return false
    const tasks = depth.ready + this.fleet.running
    if (!this.#draining) this.fleet.want(wantedContainers(tasks, record.autoscale))
    if (depth.ready > 0 && this.#isHopeless()) await this.#refuse()
    void this.#serve()
    const { ready, starting } = this.fleet
    const { minContainers } = record.autoscale
    return (
      tasks + this.#held.size + depth.delayed + depth.leased + ready + starting + minContainers > 0
    )
  }

  /** Those who wait for an answer are told; tasks of a queue wait until somebody mends it. */
  #isHopeless(): boolean {
    const { isBroken, isLate, failures, ready, starting } = this.fleet
    const isCalls = this.#options.record.kind === 'calls'
    const isOver = isBroken || isLate || failures >= FUNCTION_LIMITS.failuresMax
    return isCalls && ready + starting === 0 && isOver
  }

  async #refuse(): Promise<void> {
    const failure = this.fleet.failure
    if (failure === undefined) return
    const max = FUNCTION_LIMITS.leasesAtOnce
    const leases = await this.#lease({ max, waitMs: 0 })
    const error = taskErrorOf(failure)
    for (const lease of leases) {
      if (!this.#holds(lease)) this.#begin(lease, { refusal: error })
    }
    if (leases.length === max) this.wake()
  }

  /** Leases tasks for as long as there are slots for them. */
  async #serve(): Promise<void> {
    if (this.#serving || this.#draining) return
    this.#serving = true
    try {
      while (!this.#draining && this.fleet.free > 0) {
        this.#waiting = new AbortController()
        const max = Math.min(this.fleet.free, FUNCTION_LIMITS.leasesAtOnce)
        const leases = await this.#lease({
          max,
          waitMs: FUNCTION_LIMITS.leaseWaitMs,
          signal: this.#waiting.signal,
        })
        for (const lease of leases) {
          if (!this.#holds(lease)) this.#begin(lease, { slot: this.fleet.take() })
        }
      }
    } catch (error) {
      if (!this.#waiting.signal.aborted && !isTransient(error)) {
        this.#options.warn('could not take tasks of a queue', error)
      }
    } finally {
      this.#serving = false
    }
  }

  async #lease(options: { max: number; waitMs: number; signal?: AbortSignal }): Promise<Lease[]> {
    const { leaseMs } = FUNCTION_LIMITS
    return await this.#options.engine.queue.lease(this.#messages, { ...options, leaseMs })
  }

  /** Its lease ran out while this process stood still: it goes on under the new one. */
  #holds(lease: Lease): boolean {
    const held = this.#held.get(lease.id)
    if (!held) return false
    held.lease = lease
    held.again += 1
    return true
  }

  /** For a slot, or only to be refused; with neither it is given back. */
  #begin(
    lease: Lease,
    given: { readonly slot?: Slot | undefined; readonly refusal?: TaskError },
  ): void {
    const held: Held = { lease, again: 0 }
    this.#held.set(lease.id, held)
    const renewing = renewLease(this.#options, held)
    const work = this.#work(held, given)
      .catch((error) => {
        // It is delivered again when its lease is over.
        if (!this.#closed) this.#options.warn('a task could not be settled', error)
      })
      .finally(() => {
        renewing[Symbol.dispose]()
        given.slot?.[Symbol.dispose]()
        this.#held.delete(lease.id)
        this.#works.delete(work)
        if (this.#held.size === 0) this.#emptied?.()
      })
    this.#works.add(work)
  }

  async #work(held: Held, given: { slot?: Slot | undefined; refusal?: TaskError }): Promise<void> {
    const { engine, record, clock } = this.#options
    const { slot, refusal } = given
    const startedAtMs = clock.now()
    const task = await readTask(engine, record, held)
    if (task.recorded) return await finish(task, task.recorded, this.#options)
    // It closed meanwhile, and no container had it.
    if (this.#closed) return await settle(task, { kind: 'idle' }, { startedAtMs }, this.#options)
    let end: TryEnd = refusal ? { kind: 'fatal', error: refusal } : { kind: 'idle' }
    if (slot) {
      held.task = task
      end = await callContainer(task, slot, this.#options)
      // It was given back.
      if (this.#closed) return
      delete held.task
      slot[Symbol.dispose]()
    }
    await settle(task, end, { startedAtMs }, this.#options)
  }
}
