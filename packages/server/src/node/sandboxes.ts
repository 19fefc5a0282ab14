import type { Clock, Engine } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type {
  Fate,
  ImageStore,
  MachineNetwork,
  PinnedImage,
  RuntimeDriver,
  Sandbox,
} from '@sandlot/runtime'
import type { Logger } from 'pino'
import { toSandlotError } from '../failure.ts'
import type { Commands } from './commands.ts'
import { draftOf } from './draft.ts'
import { endedOf, neverRan } from './ended.ts'
import type { EndingNews } from './ending-news.ts'
import type { Endings } from './endings.ts'
import { Entry, type Stop } from './entry.ts'
import { diskUse } from './last-look.ts'
import { goneError, type Lent, lend } from './lend.ts'
import { openNetwork, reopenNetwork } from './networks.ts'
import type { NodeNumbers } from './numbers.ts'
import type { Ownership, OwnershipRecord } from './ownership.ts'
import type { AcquireRequest, SandboxEnded } from './port.ts'
import type { Room } from './room.ts'
import { type Starter, specOf, startSandbox } from './start.ts'
import { stopFirmly } from './stop-firmly.ts'

export interface NodeParts {
  readonly node: string
  /** Where the sandboxes' streams can be reached. */
  readonly endpoint: () => string
  readonly engine: Engine
  readonly driver: RuntimeDriver
  readonly images: ImageStore
  readonly clock: Clock
  readonly log: Logger
  readonly room: Room
  readonly starter: Starter
  readonly ownership: Ownership
  readonly endings: Endings
  readonly news: EndingNews
  readonly commands: Commands
  readonly numbers: NodeNumbers
  readonly network: MachineNetwork
}

/**
 * The register of this node's sandboxes: the only place that makes, ends and forgets them. Each is in it from the first request
 * until its ending is durable.
 */
export class NodeSandboxes {
  readonly #parts: NodeParts
  readonly #entries = new Map<string, Entry>()
  #letGo = false

  constructor(parts: NodeParts) {
    this.#parts = parts
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
    entry.stop ??= stop
    if (entry.state === 'starting') {
      entry.move('stopping')
      entry.abort.abort(new SandlotError('cancelled', stop.detail))
    } else if (entry.state === 'running') {
      entry.move('stopping')
      void this.#stop(entry)
    }
    return await entry.over
  }

  /** Takes over a sandbox that an earlier daemon left. */
  adopt(record: OwnershipRecord, sandbox: Sandbox, pinned: PinnedImage | undefined): void {
    const entry = new Entry(record)
    entry.pinned = pinned
    entry.room = this.#parts.room.occupy(record.resources)
    entry.openedAtMs = record.createdAtMs
    this.#entries.set(entry.id, entry)
    this.#opened(entry, sandbox)
    for (const { world, state } of sandbox.guest.hello.worlds) {
      if ((world !== 'grade' && world !== 'control') || state !== 'open') continue
      entry.graderWorlds.set(world, Promise.resolve())
      entry.gradeOpened = true
    }
    entry.ready = reopenNetwork(this.#parts, entry, sandbox)
  }

  /** From now on they are the next daemon's: what becomes of them is not looked at any more. */
  letGo(): void {
    this.#letGo = true
  }

  #ended(sandbox: string): SandboxEnded | undefined {
    return this.#parts.endings.find(sandbox, this.#parts.clock.now())?.ended
  }

  /** From the first request to the open world. Fails with nothing left. */
  async #create(entry: Entry, request: AcquireRequest): Promise<void> {
    const { room, images, ownership, endings, starter, clock, numbers } = this.#parts
    const { signal } = entry.abort
    try {
      await endings.forget(entry.id)
      const pinned = await images.pin(request.image)
      entry.pinned = pinned
      const { config, layers } = pinned.image
      entry.record = {
        ...entry.record,
        env: { ...config.env, ...request.env },
        workdir: request.workdir ?? (config.workdir || '/'),
        user: request.user ?? (config.user || '0'),
      }
      entry.room = await room.take(request.resources, { waitMs: request.waitMs ?? 0, signal })
      const startedMs = clock.now()
      await ownership.put(entry.record)
      const spec = specOf(entry.record, layers)
      const { sandbox, origin } = await startSandbox(starter, spec, signal)
      entry.origin = origin
      entry.sandbox = sandbox
      await openNetwork(this.#parts, entry, sandbox, { signal }).catch(async (error) => {
        await stopFirmly(sandbox, this.#parts)
        throw error
      })
      entry.createMs = clock.now() - startedMs
      if (signal.aborted) {
        await this.#stop(entry)
        throw signal.reason
      }
      numbers.created(origin, entry.createMs)
      entry.openedAtMs = clock.now()
      this.#opened(entry, sandbox)
    } catch (error) {
      await this.#failed(entry)
      throw await this.#creationError(entry, error)
    }
  }

  #opened(entry: Entry, sandbox: Sandbox): void {
    entry.sandbox = sandbox
    entry.move('running')
    void this.#watch(entry, sandbox)
    void sandbox.gone.then(async () => {
      // A sandbox that is being stopped is ended by `#stop`.
      if (entry.state !== 'running' || this.#letGo) return
      entry.move('stopping')
      await this.#stop(entry)
    })
  }

  async #watch(entry: Entry, sandbox: Sandbox): Promise<void> {
    try {
      for await (const news of sandbox.guest.watch()) {
        entry.flags.add(news.kind === 'flag' ? news.flag : 'world')
      }
    } catch {
      // The guest is lost: how it ended is told by its fate.
    }
  }

  /** Ends what runs, and records how it ended. Also for one that died alone: the driver removes what it left. */
  async #stop(entry: Entry): Promise<void> {
    const sandbox = entry.sandbox as Sandbox
    const diskBytes = await diskUse(entry, sandbox)
    const fate = await stopFirmly(sandbox, this.#parts)
    await this.#finish(entry, fate, diskBytes)
  }

  async #finish(entry: Entry, fate: Fate, diskBytes: number): Promise<void> {
    const { endings, ownership, news, numbers, commands, clock, log } = this.#parts
    const ended = endedOf(entry.record, {
      fate,
      stop: entry.stop,
      flags: entry.flags,
      gradeOpened: entry.gradeOpened,
      diskBytes,
      networkBytes: entry.network?.bytes ?? 0,
      atMs: clock.now(),
    })
    try {
      await endings.record({ ended, record: entry.record })
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

  async #creationError(entry: Entry, error: unknown): Promise<SandlotError> {
    if (entry.stop) return goneError(await entry.over, entry.id)
    const known = toSandlotError(error)
    const failure =
      known.code === 'timeout'
        ? new SandlotError('create_failed', 'the sandbox did not come up in time', { cause: error })
        : known
    if (failure.code === 'create_failed' || failure.code === 'internal') {
      this.#parts.log.warn({ err: error, sandbox: entry.id }, 'a sandbox did not come up')
    }
    this.#parts.numbers.failed(failure.code)
    return failure
  }

  #forget(entry: Entry): void {
    this.#entries.delete(entry.id)
    entry.network?.close()
    entry.room?.[Symbol.dispose]()
    entry.pinned?.[Symbol.dispose]()
  }
}

function checkEpoch(entry: Entry, epoch: number): void {
  if (epoch < entry.record.epoch) {
    throw new SandlotError(
      'lease_lost',
      `the sandbox ${entry.id} has a younger owner (epoch ${entry.record.epoch}, not ${epoch})`,
    )
  }
}
