import type { Flag, SandboxOrigin } from '@sandlot/protocol'
import type { PinnedImage, Sandbox, SandboxNetwork } from '@sandlot/runtime'
import type { NetworkJournal } from './network-journal.ts'
import type { OwnershipRecord, Stop } from './ownership.ts'
import type { GraderWorld, NodeSandbox, SandboxEnded } from './port.ts'
import { graderWorldOf } from './port-worlds.ts'
import type { TakenRoom } from './room.ts'

/**
 * A sandbox as its node sees it.
 *
 * | state | entered | what holds | left |
 * |---|---|---|---|
 * | `starting` | somebody asked | it may wait for room; `sandbox` is not there yet | running; ended (failed, or released meanwhile) |
 * | `running` | its world `main` is open, or it was adopted | `sandbox` answers as far as we know | pausing; stopping; ended (died alone) |
 * | `pausing` | its memory is being saved | who wants to use it waits | paused; running (it could not be saved) |
 * | `paused` | its memory is on disk, whole | nothing of it is in the machine, it has no room | resuming; stopping |
 * | `resuming` | it is wanted again | it may wait for room | running; paused (it could not be restored) |
 * | `stopping` | released, or past its time | no new work is begun | ended |
 * | `ended` | its ending is recorded | it is out of the register | never |
 */
export const ENTRY_STATES = [
  'starting',
  'running',
  'pausing',
  'paused',
  'resuming',
  'stopping',
  'ended',
] as const
export type EntryState = (typeof ENTRY_STATES)[number]

const MOVES: Readonly<Record<EntryState, readonly EntryState[]>> = {
  starting: ['running', 'stopping', 'ended'],
  running: ['pausing', 'stopping', 'ended'],
  pausing: ['running', 'paused'],
  paused: ['resuming', 'stopping'],
  resuming: ['running', 'paused'],
  stopping: ['ended'],
  ended: [],
}

const SHOWN: Readonly<Record<EntryState, NodeSandbox['state']>> = {
  starting: 'starting',
  running: 'running',
  pausing: 'running',
  paused: 'paused',
  resuming: 'paused',
  stopping: 'stopping',
  ended: 'stopping',
}

export class Entry {
  readonly id: string
  record: OwnershipRecord
  #state: EntryState = 'starting'
  sandbox: Sandbox | undefined
  /** Its way out, where a policy allows anything. */
  network: SandboxNetwork | undefined
  /** What it asked of its network, for its owner. */
  journal: NetworkJournal | undefined
  origin: SandboxOrigin | undefined
  createMs: number | undefined
  openedAtMs: number | undefined
  /** Since when it is metered is in its durable record. */
  startWritten = false
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
  room: TakenRoom | undefined
  /** Its image cannot be removed meanwhile. */
  pinned: PinnedImage | undefined
  #busy: Promise<void> | undefined
  /** Of ways out that it had before. */
  #networkBytesBefore: number
  #wasCutOff = false
  #uses = 0
  #usedAtMs: number

  constructor(record: OwnershipRecord) {
    this.id = record.sandbox
    this.record = record
    this.#usedAtMs = record.createdAtMs
    this.#networkBytesBefore = record.networkBytes ?? 0
    const { promise, resolve } = Promise.withResolvers<SandboxEnded>()
    this.over = promise
    this.end = resolve
  }

  get state(): EntryState {
    return this.#state
  }

  /** As others are told. */
  get shownState(): NodeSandbox['state'] {
    return SHOWN[this.#state]
  }

  /** Pending while its memory is on its way; never rejects. */
  get busy(): Promise<void> | undefined {
    return this.#busy
  }

  /** Runs work on its memory, one after the other. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const done = (this.#busy ?? Promise.resolve()).then(work)
    const settled = done.then(ignore, ignore)
    this.#busy = settled
    void settled.then(() => {
      if (this.#busy === settled) this.#busy = undefined
    })
    return done
  }

  /** To and from other hosts, since its beginning. */
  get networkBytes(): number {
    return this.#networkBytesBefore + (this.network?.bytes ?? 0)
  }

  /** Its connections broke off with an earlier daemon, and nothing took their place. */
  get isCutOff(): boolean {
    return this.network?.isCutOff ?? this.#wasCutOff
  }

  /** Its record, with what it has sent and got until now. */
  get counted(): OwnershipRecord {
    const { networkBytes, record } = this
    return networkBytes > 0 ? { ...record, networkBytes } : record
  }

  /** Its way out is over; another one counts on. Resolves when its connections are closed. */
  async closeNetwork(): Promise<void> {
    const { network } = this
    const closed = network?.close()
    this.#networkBytesBefore = this.networkBytes
    this.#wasCutOff = this.isCutOff
    this.network = undefined
    await closed
  }

  move(to: EntryState): void {
    if (!MOVES[this.#state].includes(to)) {
      throw new Error(`the sandbox ${this.id} cannot go from ${this.#state} to ${to}`)
    }
    this.#state = to
  }

  /** For one that an earlier daemon left in this state. */
  settle(state: 'paused'): void {
    this.#state = state
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

  /** It is kept warm from then on. */
  usedUntil(nowMs: number): void {
    this.#usedAtMs = nowMs
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

  /** What one that was found, or restored, has open. */
  noteWorlds(sandbox: Sandbox): void {
    for (const { world, state } of sandbox.guest.hello.worlds) {
      const grader = graderWorldOf(world)
      if (grader === undefined || state !== 'open') continue
      this.graderWorlds.set(grader, Promise.resolve())
      if (grader === 'grade' || grader === 'control') this.gradeOpened = true
    }
  }

  /** Until its guest is lost: how it ended is told by its fate. */
  async noteNews({ guest }: Sandbox): Promise<void> {
    try {
      for await (const news of guest.watch()) {
        this.flags.add(news.kind === 'flag' ? news.flag : 'world')
      }
    } catch {}
  }

  view(): NodeSandbox {
    const { hostname: _, keepWarmMs: __, lifetimeMs: ___, endpoint: ____, ...shown } = this.record
    const { network: _____, phase: ______, ...record } = shown
    const { pausedAtMs: _______, pausedMs: ________, ...rest } = record
    const {
      unready: _________,
      networkBytes: __________,
      meteredFromMs: ___________,
      model: ____________,
      reachesApi: _____________,
      stop: ______________,
      ...told
    } = rest
    return {
      ...told,
      state: this.shownState,
      ...(this.createMs === undefined ? {} : { createMs: this.createMs }),
      ...(this.origin === undefined ? {} : { origin: this.origin }),
    }
  }
}

function ignore(): void {}
