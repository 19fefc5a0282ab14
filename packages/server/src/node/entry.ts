import type { Flag } from '@sandlot/protocol'
import type { PinnedImage, Sandbox, SandboxNetwork } from '@sandlot/runtime'
import type { OwnershipRecord } from './ownership.ts'
import type { GraderWorld, NodeSandbox, SandboxEnded } from './port.ts'

/**
 * A sandbox as its node sees it.
 *
 * | state | entered | what holds | left |
 * |---|---|---|---|
 * | `starting` | somebody asked | it may wait for room; `sandbox` is not there yet | running; ended (failed, or released meanwhile) |
 * | `running` | its world `main` is open, or it was adopted | `sandbox` answers as far as we know | stopping; ended (died alone) |
 * | `stopping` | released, or past its time | no new work is begun | ended |
 * | `ended` | its ending is recorded | it is out of the register | never |
 */
export const ENTRY_STATES = ['starting', 'running', 'stopping', 'ended'] as const
export type EntryState = (typeof ENTRY_STATES)[number]

const MOVES: Readonly<Record<EntryState, readonly EntryState[]>> = {
  starting: ['running', 'stopping', 'ended'],
  running: ['stopping', 'ended'],
  stopping: ['ended'],
  ended: [],
}

/** Why somebody ends a sandbox. */
export interface Stop {
  readonly kind: 'stopped' | 'expired' | 'lost'
  readonly detail: string
  /** Its owner did not ask for it, and has to be told. */
  readonly untold?: boolean
}

export class Entry {
  readonly id: string
  record: OwnershipRecord
  #state: EntryState = 'starting'
  sandbox: Sandbox | undefined
  /** Its way out, where a policy allows anything. */
  network: SandboxNetwork | undefined
  origin: 'pool' | 'cold' | undefined
  createMs: number | undefined
  openedAtMs: number | undefined
  /** Settles when the creation has. */
  ready: Promise<void> = Promise.resolve()
  /** Ends the creation. */
  readonly abort = new AbortController()
  /** Resolves with how it ended, also where it never came up. */
  readonly over: Promise<SandboxEnded>
  readonly end: (ended: SandboxEnded) => void
  /** Set by whoever ends it first. */
  stop: Stop | undefined
  /** The grader's worlds: being opened, or open. */
  readonly graderWorlds = new Map<GraderWorld, Promise<void>>()
  /** It was opened: a grader may have run. */
  gradeOpened = false
  readonly flags = new Set<Flag>()
  room: Disposable | undefined
  /** Its image cannot be removed meanwhile. */
  pinned: PinnedImage | undefined
  #uses = 0
  #usedAtMs: number

  constructor(record: OwnershipRecord) {
    this.id = record.sandbox
    this.record = record
    this.#usedAtMs = record.createdAtMs
    const { promise, resolve } = Promise.withResolvers<SandboxEnded>()
    this.over = promise
    this.end = resolve
  }

  get state(): EntryState {
    return this.#state
  }

  move(to: EntryState): void {
    if (!MOVES[this.#state].includes(to)) {
      throw new Error(`the sandbox ${this.id} cannot go from ${this.#state} to ${to}`)
    }
    this.#state = to
  }

  /** Somebody uses it until disposed: its time of being kept warm begins when nobody does. */
  use(now: () => number): Disposable {
    this.#uses += 1
    let over = false
    return {
      [Symbol.dispose]: () => {
        if (over) return
        over = true
        this.#uses -= 1
        this.#usedAtMs = now()
      },
    }
  }

  get uses(): number {
    return this.#uses
  }

  /** It is past its lifetime, or was kept warm long enough; why, or undefined. */
  pastTime(nowMs: number): string | undefined {
    const { lifetimeMs, keepWarmMs } = this.record
    if (this.#state !== 'running') return undefined
    if (lifetimeMs !== null && nowMs >= (this.openedAtMs ?? nowMs) + lifetimeMs) {
      return `its lifetime of ${lifetimeMs} ms was over`
    }
    if (keepWarmMs !== null && this.#uses === 0 && nowMs >= this.#usedAtMs + keepWarmMs) {
      return `nobody used it for ${keepWarmMs} ms`
    }
    return undefined
  }

  view(): NodeSandbox {
    const { hostname: _, keepWarmMs: __, lifetimeMs: ___, endpoint: ____, ...shown } = this.record
    const { network: _____, phase: ______, ...record } = shown
    return {
      ...record,
      state: this.#state === 'ended' ? 'stopping' : this.#state,
      ...(this.createMs === undefined ? {} : { createMs: this.createMs }),
      ...(this.origin === undefined ? {} : { origin: this.origin }),
    }
  }
}
