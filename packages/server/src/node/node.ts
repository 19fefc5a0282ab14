import type { Resources } from '@sandlot/protocol'
import { MachineNetwork, packageSettings, type Usage } from '@sandlot/runtime'
import { keepMetering } from '../usage/keep-metering.ts'
import { Meter } from '../usage/meter.ts'
import { canRestore, type SavedOf } from './can-restore.ts'
import { closeNode } from './close-node.ts'
import { type CollectedFiles, type CollectFilesRequest, collectFiles } from './collect-files.ts'
import { Commands } from './commands.ts'
import { Creations } from './creations.ts'
import { unheardOf } from './ended.ts'
import { Endings } from './endings.ts'
import type { Entry } from './entry.ts'
import { expectSandboxes } from './expect.ts'
import { type Copies, type Forked, forkMemory } from './fork.ts'
import { openGradeWorld } from './grade-world.ts'
import { usageNow } from './last-look.ts'
import { machineRoom } from './machine-room.ts'
import { keepNetworkBytes } from './network-bytes.ts'
import { NetworkJournals } from './network-journals.ts'
import { enterPhase } from './networks.ts'
import { News } from './news.ts'
import { uncounted } from './numbers.ts'
import { onEntry } from './on-entry.ts'
import { isAttempt } from './owners.ts'
import { Ownership } from './ownership.ts'
import { passFiles } from './pass-files.ts'
import { watchIdleProcessors } from './pool/idle.ts'
import { SandboxPool } from './pool/pool.ts'
import type {
  AcquireRequest,
  EndWorldRequest,
  EnterPhaseRequest,
  ExecAddress,
  ExpectRequest,
  ModelCall,
  NodeCapacity,
  NodeExecEnd,
  NodeExecRequest,
  NodePort,
  NodeSandbox,
  NodeWait,
  OpenGradeWorldRequest,
  PassFilesRequest,
  PutFilesRequest,
  ReadFileRequest,
  ReleaseRequest,
  SandboxEnded,
} from './port.ts'
import { putFiles } from './put-files.ts'
import { seenIn } from './put-over.ts'
import { readFile } from './read-file.ts'
import { reapPastTime } from './reaper.ts'
import { keepReconciled } from './reconcile.ts'
import { type Recovered, recoverNode } from './recover.ts'
import { RefusedPacketsNews } from './refused-packets.ts'
import type { Room } from './room.ts'
import { type NodeParts, NodeSandboxes } from './sandboxes.ts'
import { type NodeNetworks, nodeNetworks } from './set-network.ts'
import type { NodeOptions } from './settings.ts'
import { deadlineOf, within } from './waits.ts'
import { watchMemory } from './watch-memory.ts'

/** This machine as a node: its sandboxes, its pool, its room. Open, then `recover`, then `pool.fill`. */
export class Node implements NodePort {
  readonly node: string
  readonly sandboxes: NodeSandboxes
  readonly commands: Commands
  readonly pool: SandboxPool
  readonly room: Room
  readonly creations: Creations
  readonly endingsKnown: Endings
  readonly meter: Meter
  readonly networks: NodeNetworks
  readonly #parts: NodeParts
  readonly #periodic = new DisposableStack()
  #closed: Promise<void> | undefined

  private constructor(parts: NodeParts) {
    this.#parts = parts
    this.node = parts.node
    this.sandboxes = new NodeSandboxes(parts)
    this.commands = parts.commands
    this.pool = parts.starter.pool
    this.creations = parts.starter.creations
    this.room = parts.room
    this.endingsKnown = parts.endings
    this.meter = parts.meter
    this.networks = nodeNetworks(parts)
  }

  static async open(options: NodeOptions): Promise<Node> {
    const { engine, driver, clock, log, checkpoints, prices = null, usageRetainMs } = options
    const creations = new Creations(options.creationsMax)
    const room = machineRoom(driver, options.room, options.memoryFreeBytes)
    const idleProcessors = watchIdleProcessors()
    const parts = { driver, creations, checkpoints, room, clock, log, idleProcessors }
    const pool = new SandboxPool({ ...parts, settings: options.pool })
    return new Node({
      ...options,
      room,
      starter: { driver, pool, creations, log },
      ...{ ownership: new Ownership(engine), journals: new NetworkJournals(engine) },
      endings: await Endings.open(engine),
      meter: await Meter.open({ engine, clock, log, prices, retainMs: usageRetainMs }),
      ...{ news: new News(), modelNews: new News(), commands: new Commands() },
      numbers: options.numbers ?? uncounted,
      network: options.network ?? new MachineNetwork(packageSettings()),
    })
  }

  async recover(wait?: { readonly signal?: AbortSignal }): Promise<Recovered> {
    const recovered = await recoverNode(this.#parts, this.sandboxes, wait)
    this.#periodic.use(reapPastTime(this.sandboxes, this.#parts.clock))
    const { entries } = this.sandboxes
    this.#periodic.use(await watchMemory(this.room.memory, { ...this.#parts, entries }))
    const refused = new RefusedPacketsNews(this.#parts)
    this.#periodic.use(keepReconciled({ ...this.#parts, pool: this.pool, refused }, entries))
    this.#periodic.use(keepNetworkBytes(this.#parts, entries))
    this.#periodic.use(keepMetering({ ...this.#parts, pool: this.pool, entries }))
    return recovered
  }

  async acquire(request: AcquireRequest, wait?: NodeWait): Promise<NodeSandbox> {
    const entry = await within(this.sandboxes.acquire(request), wait)
    return entry.view()
  }

  expect(request: ExpectRequest): Promise<void> {
    return expectSandboxes(this.#parts, request)
  }

  canRestore(saved: SavedOf): Promise<boolean> {
    return canRestore(this.#parts, saved)
  }

  async release(request: ReleaseRequest, wait?: NodeWait): Promise<SandboxEnded> {
    const { sandbox, epoch, reason, by } = request
    const stop = { kind: 'stopped', detail: reason, untold: by === 'other' } as const
    const ended = await within(
      this.sandboxes.end(sandbox, stop, epoch === undefined ? {} : { epoch }),
      wait,
    )
    return ended ?? unheardOf(request, { node: this.node, atMs: this.#parts.clock.now() })
  }

  exec(request: NodeExecRequest, wait?: NodeWait): Promise<NodeExecEnd> {
    return within(this.#exec(request), wait)
  }

  async killExec(
    request: ExecAddress & { readonly signal?: number },
    wait?: NodeWait,
  ): Promise<{ readonly processes: number }> {
    using lent = await this.sandboxes.lend(request.sandbox)
    return await this.commands.kill(lent, request, wait)
  }

  async hasExec({ sandbox, exec }: ExecAddress, wait?: NodeWait): Promise<boolean> {
    return (await this.knownExecs({ sandbox }, wait)).has(exec)
  }

  async knownExecs(
    { sandbox }: Pick<ExecAddress, 'sandbox'>,
    wait?: NodeWait,
  ): Promise<ReadonlySet<string>> {
    using lent = await this.sandboxes.lend(sandbox)
    return await this.commands.known(lent, wait)
  }

  async openGradeWorld(request: OpenGradeWorldRequest, wait?: NodeWait): Promise<void> {
    await onEntry(this.sandboxes, request.sandbox, (_, entry) =>
      within(openGradeWorld(this.#parts, entry, request), wait),
    )
  }

  async endWorld({ sandbox, world }: EndWorldRequest, wait?: NodeWait): Promise<void> {
    await onEntry(this.sandboxes, sandbox, ({ guest }) => guest.endWorld(world, wait))
  }

  async passFiles(request: PassFilesRequest, wait?: NodeWait): Promise<void> {
    using lent = await this.sandboxes.lend(request.sandbox)
    using due = deadlineOf(wait)
    await passFiles(lent, request, due)
  }

  async enterPhase(request: EnterPhaseRequest, wait?: NodeWait): Promise<void> {
    const { sandbox, phase, world = 'main' } = request
    await onEntry(this.sandboxes, sandbox, (_, entry) =>
      within(enterPhase(this.#parts, entry, { phase, world }), wait),
    )
  }

  /** Running copies of a sandbox with its memory, a result for each. */
  fork(original: Entry, copies: Copies): Promise<Forked[]> {
    return forkMemory(this.#parts, this.sandboxes, original, copies)
  }

  async putFiles(request: PutFilesRequest, wait?: NodeWait): Promise<void> {
    using lent = await this.sandboxes.lend(request.sandbox)
    using due = deadlineOf(wait)
    await putFiles(lent, request, { ...this.#parts, signal: due.signal })
  }

  async collectFiles(request: CollectFilesRequest, wait?: NodeWait): Promise<CollectedFiles> {
    using lent = await this.sandboxes.lend(request.sandbox)
    const { blobs } = this.#parts.engine
    using due = deadlineOf(wait)
    return await collectFiles(lent, request, { blobs, signal: due.signal })
  }

  async readFile(request: ReadFileRequest, wait?: NodeWait): Promise<Uint8Array | undefined> {
    using lent = await this.sandboxes.lend(request.sandbox)
    using due = deadlineOf(wait)
    return await readFile(lent, request, due)
  }

  async find(sandbox: string): Promise<NodeSandbox | SandboxEnded | undefined> {
    const entry = this.sandboxes.entries.get(sandbox)
    return entry?.view() ?? this.endingsKnown.find(sandbox, this.#parts.clock.now())?.ended
  }

  /** Whether an attempt owns the sandbox, and no client. */
  isOfAttempt(sandbox = ''): boolean {
    const owner = this.sandboxes.entries.get(sandbox)?.record.owner
    return owner !== undefined && isAttempt(owner)
  }

  async list(): Promise<readonly NodeSandbox[]> {
    return [...this.sandboxes.entries.values()].map((entry) => entry.view())
  }

  endings({ signal }: { signal: AbortSignal }): AsyncIterable<SandboxEnded> {
    return this.#parts.news.read(signal)
  }

  modelCalls({ signal }: { signal: AbortSignal }): AsyncIterable<ModelCall> {
    return this.#parts.modelNews.read(signal)
  }

  /** What a living sandbox uses now; undefined where it can't be told. */
  usage(entry: Entry): Promise<Usage | undefined> {
    return usageNow(this.#parts, entry)
  }

  async capacity(resources: Resources): Promise<NodeCapacity> {
    const counts = await this.room.counts(resources)
    return { node: this.node, ...counts, creating: this.creations.max }
  }

  /** Ends the pool, and every sandbox where `sandboxes` says so. Idempotent. */
  close(sandboxes: 'stop' | 'keep'): Promise<void> {
    const closing = { periodic: this.#periodic, sandboxes }
    this.#closed ??= closeNode(this.#parts, this, closing)
    return this.#closed
  }

  async #exec(request: NodeExecRequest): Promise<NodeExecEnd> {
    const { image, sandbox } = request
    using lent = await this.sandboxes.lend(sandbox)
    const entry = this.sandboxes.entries.get(sandbox)
    const seen = image === undefined ? {} : await seenIn(this.#parts.images, image, entry)
    return await this.commands.run({ ...lent, ...seen }, request, { keep: true })
  }
}
