import type { FateKind } from '../driver.ts'
import type {
  Guest,
  GuestConfiguration,
  GuestExecs,
  GuestFiles,
  GuestHello,
  GuestIdentity,
  GuestNews,
  GuestProcess,
  GuestStats,
  GuestTars,
  GuestWait,
  WorldEnder,
  WorldSpec,
  WorldState,
} from '../guest/guest.ts'
import { GuestError, GuestLost } from '../guest/guest-error.ts'
import { unlessAborted } from '../unless-aborted.ts'
import { FakeExecs } from './execs.ts'
import { fileCalls } from './file-calls.ts'
import { FakeFiles } from './files.ts'
import { FakePorts } from './ports.ts'
import { FakeRelay } from './relay.ts'
import type { FakeClock, FakeScript } from './script.ts'
import { tarCalls } from './tar-calls.ts'

interface FakeWorld {
  state: WorldState
  files: FakeFiles
  endedBy?: WorldEnder
}

/** Worlds of a guest that was saved. */
export type FakeMemory = ReadonlyMap<string, Readonly<FakeWorld>>

/** A guest without frames: worlds and files in memory, commands by script. Idle, it costs a few objects. */
export class FakeGuest implements Guest {
  readonly lost: Promise<GuestLost>
  readonly exec: GuestExecs
  readonly files: GuestFiles
  readonly tar: GuestTars
  readonly relay = new FakeRelay()
  readonly ports = new FakePorts({
    alive: () => this.#alive(),
    relayPort: () => this.relay.port,
  })
  readonly #execs: FakeExecs
  readonly #lost = Promise.withResolvers<GuestLost>()
  readonly #worlds = new Map<string, FakeWorld>()
  readonly #startedAtMs: number
  readonly #clock: FakeClock
  readonly #listeners = new Set<(news: GuestNews) => void>()
  #gone: GuestLost | undefined
  #sandbox = ''

  constructor(options: {
    readonly sandbox: string
    readonly script: FakeScript
    readonly clock: FakeClock
    /** The sandbox ends in this way. */
    readonly die: (kind: FateKind) => void
  }) {
    this.#clock = options.clock
    this.#startedAtMs = options.clock.now()
    this.lost = this.#lost.promise
    // The files of a world that has ended can still be read: nothing runs in it any more.
    const filesLeft = (world: string) => this.#dressed(world).files
    this.#execs = new FakeExecs({
      sandbox: options.sandbox,
      script: options.script,
      clock: options.clock,
      alive: () => this.#alive(),
      ports: this.ports,
      filesOf: (world) => this.#open(world).files,
      die: options.die,
    })
    this.exec = this.#execs
    this.files = fileCalls(filesLeft)
    this.tar = tarCalls(filesLeft)
  }

  get hello(): GuestHello {
    return {
      protocol: 1,
      agent: 'fake',
      boot: new Uint8Array(16),
      sandbox: this.#sandbox,
      uptimeMs: this.#clock.now() - this.#startedAtMs,
      worlds: [...this.#worlds].map(([world, { state }]) => ({ world, state })),
      execs: [],
    }
  }

  async configure(options: GuestConfiguration): Promise<void> {
    this.#alive()
    this.#sandbox = options.sandbox
  }

  async freeze(): Promise<void> {
    this.#alive()
  }

  async thaw(identity?: GuestIdentity): Promise<void> {
    this.#alive()
    if (!identity) return
    this.#sandbox = identity.sandbox
    this.relay.port = identity.relayPort
  }

  /** For the driver: worlds and files as they are now. Commands are scripts, which can't be copied. */
  save(): FakeMemory {
    const copy = ({ files, ...rest }: FakeWorld) => ({
      ...rest,
      files: new FakeFiles(files.totalBytes, files),
    })
    return new Map([...this.#worlds].map(([world, each]) => [world, copy(each)]))
  }

  /** For the driver: goes on from what was saved of another. */
  load(memory: FakeMemory): void {
    for (const [world, { files, ...rest }] of memory) {
      this.#worlds.set(world, { ...rest, files: new FakeFiles(files.totalBytes, files) })
    }
  }

  async prepareWorld(world: string): Promise<{ elapsedUs: number }> {
    this.#alive()
    const { state } = this.#worlds.get(world) ?? { state: 'prepared' }
    if (state !== 'prepared') throw new GuestError('exists', world)
    this.#worlds.set(world, { state, files: new FakeFiles(0) })
    return { elapsedUs: 0 }
  }

  async openWorld(spec: WorldSpec): Promise<{ elapsedUs: number }> {
    this.#alive()
    const known = this.#worlds.get(spec.world)
    if (known && known.state !== 'prepared') throw new GuestError('exists', spec.world)
    const below = spec.below === undefined ? undefined : this.#worlds.get(spec.below)
    if (spec.below !== undefined && below?.state !== 'ended') {
      throw new GuestError('invalid', `${spec.below} has not ended`)
    }
    const files = new FakeFiles(spec.upperBytes, below?.files)
    this.#worlds.set(spec.world, { state: 'open', files })
    return { elapsedUs: 0 }
  }

  async endWorld(
    world: string,
    wait: GuestWait = {},
  ): Promise<{ elapsedUs: number; by: WorldEnder }> {
    this.#alive()
    wait.signal?.throwIfAborted()
    const found = this.#world(world)
    if (found.state !== 'ended') this.#end(world, found, 'request')
    return { elapsedUs: 0, by: found.endedBy ?? 'request' }
  }

  /** For tests: the episode kills its own world. */
  endByEpisode(world: string): void {
    this.#end(world, this.#open(world), 'episode')
    this.say({ kind: 'world_ended', world, by: 'episode' })
  }

  /** For tests: news for everybody who watches. */
  say(news: GuestNews): void {
    for (const listener of this.#listeners) listener(news)
  }

  async *watch(wait: Pick<GuestWait, 'signal'> = {}): AsyncIterable<GuestNews> {
    this.#alive()
    const queue: GuestNews[] = []
    let wake = Promise.withResolvers<void>()
    const listener = (news: GuestNews) => {
      queue.push(news)
      wake.resolve()
    }
    this.#listeners.add(listener)
    try {
      const lost = this.lost.then((error) => Promise.reject(error))
      lost.catch(() => {})
      for (;;) {
        while (queue.length > 0) yield queue.shift() as GuestNews
        wake = Promise.withResolvers()
        await unlessAborted(wait.signal, Promise.race([wake.promise, lost]))
      }
    } finally {
      this.#listeners.delete(listener)
    }
  }

  async stats(): Promise<GuestStats> {
    this.#alive()
    const worlds = [...this.#worlds].map(([world, { files }]) => ({
      world,
      processes: this.#execs.running(world).length,
      upperUsedBytes: files.usedBytes,
      upperTotalBytes: files.totalBytes,
      upperInodesUsed: files.count,
      upperInodesTotal: Number.MAX_SAFE_INTEGER,
      pidsPeak: 0,
      pidsRefused: 0,
    }))
    return { worlds, rings: 0 }
  }

  async processes(world: string): Promise<readonly GuestProcess[]> {
    this.#world(world)
    return this.#execs.running(world).map(({ exec, pid, argv }) => ({
      pid,
      parent: 1,
      exec,
      command: Buffer.from(argv.join(' ')),
    }))
  }

  async close(): Promise<void> {
    this.lose(new GuestLost('detached', 'close() was called'))
  }

  /** For the driver: nothing answers any more. Idempotent. */
  lose(error: GuestLost): void {
    if (this.#gone) return
    this.#gone = error
    this.#execs.failAll(error)
    this.ports.reset(error)
    this.#lost.resolve(error)
  }

  #end(world: string, found: FakeWorld, by: WorldEnder): void {
    found.state = 'ended'
    found.endedBy = by
    for (const exec of this.#execs.running(world)) exec.kill(9)
  }

  #open(world: string): FakeWorld {
    const found = this.#world(world)
    if (found.state !== 'open') throw new GuestError('world_not_open', world)
    return found
  }

  #dressed(world: string): FakeWorld {
    const found = this.#world(world)
    if (found.state === 'prepared') throw new GuestError('world_not_open', world)
    return found
  }

  #world(world: string): FakeWorld {
    this.#alive()
    const found = this.#worlds.get(world)
    if (!found) throw new GuestError('world_unknown', world)
    return found
  }

  #alive(): void {
    if (this.#gone) throw this.#gone
  }
}
