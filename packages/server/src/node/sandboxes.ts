import type { Engine } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { Fate, Image, ImageStore, PinnedImage, RuntimeDriver, Sandbox } from '@sandlot/runtime'
import type { Meter } from '../usage/meter.ts'
import { settlePause, withoutStretch } from '../usage/settle-pause.ts'
import { aliveSinceMs } from './alive-since.ts'
import { bringUp } from './bring-up.ts'
import { checkEpoch } from './check-epoch.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Commands } from './commands.ts'
import { creationError } from './creation-error.ts'
import { draftOf } from './draft.ts'
import { endedOf, NO_USAGE, neverRan } from './ended.ts'
import type { Endings } from './endings.ts'
import { Entry } from './entry.ts'
import { lastLook } from './last-look.ts'
import { goneError, type Lent, lend } from './lend.ts'
import { lendGpus } from './lend-gpus.ts'
import { SandboxMemory } from './memory.ts'
import { closeJournal, type NetworkParts, reopenNetwork } from './networks.ts'
import type { News } from './news.ts'
import type { OwnershipRecord, Stop } from './ownership.ts'
import type { AcquireRequest, SandboxEnded } from './port.ts'
import { putOver } from './put-over.ts'
import type { Room } from './room.ts'
import { type Starter, turnLeftMs } from './start.ts'
import { stopFirmly } from './stop-firmly.ts'
import { writeStop } from './write-stop.ts'

export interface NodeParts extends NetworkParts {
  readonly node: string
  /** Where the sandboxes' streams can be reached. */
  readonly endpoint: () => string
  readonly engine: Engine
  readonly driver: RuntimeDriver
  readonly images: ImageStore
  readonly room: Room
  readonly starter: Starter
  readonly checkpoints: Checkpoints
  readonly endings: Endings
  readonly news: News<SandboxEnded>
  readonly commands: Commands
  readonly meter: Meter
  readonly onReleased?: ((image: Image) => void) | undefined
}

/**
 * The register of this node's sandboxes: the only place that makes, ends and forgets them. Each is in it from the first request
 * until its ending is durable.
 */
export class NodeSandboxes {
  readonly #parts: NodeParts
  /** Of the memory of those that are to be saved. */
  readonly memory: SandboxMemory
  readonly #entries = new Map<string, Entry>()
  #letGo = false

  constructor(parts: NodeParts) {
    this.#parts = parts
    this.memory = new SandboxMemory(parts, {
      resumed: (entry, sandbox) => this.#found(entry, sandbox),
      unchanged: (entry) => {
        const { sandbox } = entry
        if (sandbox) void sandbox.gone.then(() => this.#gone(entry, sandbox))
      },
    })
  }

  get entries(): ReadonlyMap<string, Entry> {
    return this.#entries
  }

  /** The entry of this id, made on the first call. */
  async acquire(request: AcquireRequest): Promise<Entry> {
    const present = this.#entries.get(request.sandbox)
    if (present) {
      checkEpoch(present, request.epoch)
      await present.ready
      return present
    }
    const ending = this.#parts.endings.find(request.sandbox, this.#parts.clock.now())
    if (ending && !ending.traceless) throw goneError(ending.ended, request.sandbox)
    const entry = new Entry(draftOf(request, this.#parts))
    this.#entries.set(entry.id, entry)
    entry.ready = this.#create(entry, request)
    // Whoever waits is told; nobody may be.
    entry.ready.catch(() => {})
    await entry.ready
    return entry
  }

  /**
   * The use of a living sandbox.
   * @throws SandlotError `sandbox_unknown`, `sandbox_gone`, `sandbox_lost`
   */
  async lend(
    sandbox: string,
    options: { readonly project?: string; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Lent> {
    const entry = this.#entries.get(sandbox)
    const { project } = options
    if (entry && (project === undefined || entry.record.project === project)) {
      return await lend(entry, { signal: options.signal, now: () => this.#parts.clock.now() })
    }
    const ended = this.#ended(sandbox)
    if (ended && (project === undefined || ended.project === project)) {
      throw goneError(ended, sandbox)
    }
    throw new SandlotError('sandbox_unknown', `no sandbox ${sandbox.slice(0, 64)} is known here`)
  }

  /** Ends a sandbox; the first who asks says why. Undefined where nothing is known of it. */
  async end(
    sandbox: string,
    stop: Stop,
    options: { readonly epoch?: number } = {},
  ): Promise<SandboxEnded | undefined> {
    const entry = this.#entries.get(sandbox)
    if (!entry) return this.#ended(sandbox)
    if (options.epoch !== undefined) checkEpoch(entry, options.epoch)
    if (entry.busy) await entry.busy
    entry.stop ??= stop
    if (entry.state === 'starting') {
      entry.move('stopping')
      entry.abort.abort(new SandlotError('cancelled', stop.detail))
    } else if (entry.state === 'running') {
      entry.move('stopping')
      void this.#stop(entry)
    } else if (entry.state === 'paused') {
      entry.move('stopping')
      void this.#endPaused(entry)
    }
    return await entry.over
  }

  /** Takes over a sandbox that an earlier daemon left. */
  adopt(record: OwnershipRecord, sandbox: Sandbox, pinned: PinnedImage | undefined): void {
    const entry = this.#adopted(record, pinned)
    entry.room = this.#parts.room.occupy(record.resources, sandbox.spec.gpus)
    this.#found(entry, sandbox)
  }

  /** Takes over one of which an earlier daemon left the memory alone. */
  adoptPaused(record: OwnershipRecord, pinned: PinnedImage | undefined): void {
    this.#adopted(record, pinned).settle('paused')
  }

  /** From now on they are the next daemon's: what becomes of them is not looked at any more. */
  letGo(): void {
    this.#letGo = true
  }

  #adopted(record: OwnershipRecord, pinned: PinnedImage | undefined): Entry {
    const entry = new Entry(record)
    entry.pinned = pinned
    const { clock } = this.#parts
    entry.openedAtMs = aliveSinceMs(record.createdAtMs + (record.pausedMs ?? 0), clock)
    // Who used it last, and when, the daemon before knew alone.
    entry.usedUntil(clock.now())
    this.#entries.set(entry.id, entry)
    return entry
  }

  /** It runs, with what it had. */
  #found(entry: Entry, sandbox: Sandbox): void {
    this.#opened(entry, sandbox)
    entry.noteWorlds(sandbox)
    entry.ready = reopenNetwork(this.#parts, entry, sandbox)
  }

  #ended(sandbox: string): SandboxEnded | undefined {
    return this.#parts.endings.find(sandbox, this.#parts.clock.now())?.ended
  }

  /** From the first request to the open world. Fails with nothing left. */
  async #create(entry: Entry, request: AcquireRequest): Promise<void> {
    const { room, images, endings, clock, numbers } = this.#parts
    const { signal } = entry.abort
    const askedAtMs = clock.now()
    try {
      await endings.forget(entry.id)
      await putOver(images, entry, request)
      entry.room = await room.take(request.resources, { waitMs: request.waitMs ?? 0, signal })
      await lendGpus(this.#parts, entry)
      const startedMs = clock.now()
      const turnMs = turnLeftMs(request.waitMs, startedMs - askedAtMs)
      const origin = await bringUp(this.#parts, entry, request, turnMs)
      entry.createMs = clock.now() - startedMs
      if (signal.aborted) {
        await this.#stop(entry)
        throw signal.reason
      }
      numbers.created(origin, entry.createMs)
      entry.openedAtMs = clock.now()
      // Nobody could use it while it came up.
      entry.usedUntil(entry.openedAtMs)
      entry.record = { ...entry.record, meteredFromMs: entry.openedAtMs }
      this.#opened(entry, entry.sandbox as Sandbox)
    } catch (error) {
      await this.#failed(entry)
      throw await creationError(entry, error, this.#parts)
    }
  }

  #opened(entry: Entry, sandbox: Sandbox): void {
    entry.sandbox = sandbox
    entry.move('running')
    void entry.noteNews(sandbox)
    void sandbox.gone.then(() => this.#gone(entry, sandbox))
  }

  /** A sandbox that is being stopped is ended by `#stop`; one that is being paused is looked at again when that failed. */
  async #gone(entry: Entry, sandbox: Sandbox): Promise<void> {
    if (entry.sandbox !== sandbox || entry.state !== 'running' || this.#letGo) return
    entry.move('stopping')
    await this.#stop(entry)
  }

  /** Ends what runs, and records how it ended. Also for one that died alone: the driver removes what it left. */
  async #stop(entry: Entry): Promise<void> {
    const sandbox = entry.sandbox as Sandbox
    const [diskBytes] = await Promise.all([
      lastLook(this.#parts, entry, sandbox),
      writeStop(this.#parts, entry),
    ])
    const fate = await stopFirmly(sandbox, this.#parts)
    await this.#finish(entry, fate, diskBytes)
  }

  /** Nothing of it is in the machine. */
  async #endPaused(entry: Entry): Promise<void> {
    const { checkpoints, log } = this.#parts
    await writeStop(this.#parts, entry)
    await checkpoints.remove(entry.id).catch((error) => {
      log.error({ err: error, sandbox: entry.id }, 'the memory of a sandbox stays on disk')
    })
    entry.record = await settlePause(this.#parts, entry.record)
    await this.#finish(entry, { kind: 'stopped', detail: 'stopped', usage: NO_USAGE }, 0)
  }

  async #finish(entry: Entry, fate: Fate, diskBytes: number): Promise<void> {
    const { endings, ownership, meter, news, numbers, commands, clock, log } = this.#parts
    await closeJournal(this.#parts, entry)
    const { record, networkBytes } = entry
    const atMs = clock.now()
    const ended = endedOf(record, {
      fate,
      stop: entry.stop,
      flags: entry.flags,
      gradeOpened: entry.gradeOpened,
      cutOff: entry.isCutOff,
      diskBytes,
      metered: meter.timeOf(record, atMs),
      ...{ networkBytes, atMs },
    })
    try {
      await endings.record({ ended, record })
      meter.ended({ ended, record })
      entry.record = withoutStretch(record)
      await ownership.remove(entry.id)
    } catch (error) {
      // It stays owned on disk; the next start finds it dead and records it then.
      log.error({ err: error, sandbox: entry.id }, 'an ending could not be recorded')
    }
    entry.move('ended')
    this.#forget(entry)
    commands.forget(entry.id)
    numbers.ended(ended.kind)
    entry.end(ended)
    if (!ended.asked || entry.stop?.untold) news.tell(ended)
  }

  /** A creation failed: its room is free again, and nothing of it is written. */
  async #failed(entry: Entry): Promise<void> {
    if (entry.state === 'ended') return
    const { clock, ownership, endings } = this.#parts
    await ownership.remove(entry.id).catch(() => {})
    entry.move('ended')
    this.#forget(entry)
    const { stop } = entry
    const ended = neverRan(entry.record, { stop, atMs: clock.now() })
    // A creation that failed may be asked for again; one that was released may not.
    if (stop) await endings.record({ ended, record: entry.record }).catch(() => {})
    entry.end(ended)
  }

  #forget(entry: Entry): void {
    this.#entries.delete(entry.id)
    void entry.network?.close()
    entry.room?.[Symbol.dispose]()
    const { pinned } = entry
    if (!pinned) return
    pinned[Symbol.dispose]()
    this.#parts.onReleased?.(pinned.image)
  }
}
