import { type SandboxEnding, SandlotError } from '@sandlot/protocol'
import type { CollectedFiles, CollectFilesRequest } from '../../node/collect-files.ts'
import { News } from '../../node/news.ts'
import type {
  AcquireRequest,
  EndWorldRequest,
  EnterPhaseRequest,
  ExpectRequest,
  GraderWorld,
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
} from '../../node/port.ts'

export interface SimulatedNodeOptions {
  readonly capacity?: number
  /** So many commands that have ended are remembered of each sandbox. Default: all. */
  readonly remembered?: number
  /** Throws what the creation fails with. */
  onAcquire?(request: AcquireRequest): void | Promise<void>
  /** Runs a command; by default everything exits with 0. */
  onExec?(request: NodeExecRequest): Partial<NodeExecEnd> | Promise<Partial<NodeExecEnd>>
  onCollect?(
    request: CollectFilesRequest,
    wait?: NodeWait,
  ): CollectedFiles | Promise<CollectedFiles>
  /** What a file holds; by default there is none. */
  onRead?(request: ReadFileRequest): string | undefined | Promise<string | undefined>
  /** A file that is put; throws what that fails with. */
  onPut?(request: PutFilesRequest): void | Promise<void>
  onKill?(exec: string): void | Promise<void>
  onOpenGradeWorld?(sandbox: string, world: GraderWorld): void | Promise<void>
}

/** A node in memory that keeps the port's promises: it outlives its coordinators, and recognises what it was asked before. */
export class SimulatedNode implements NodePort {
  readonly node = 'simulated'
  readonly living = new Map<string, NodeSandbox>()
  /** Every sandbox that ever was, also those that ended. */
  readonly acquired: string[] = []
  /** What was announced, in order. */
  readonly expected: ExpectRequest[] = []
  /** Commands that were really started, in order. */
  readonly started: NodeExecRequest[] = []
  readonly killed: string[] = []
  readonly files: PutFilesRequest[] = []
  /** Phases that sandboxes were told to be in, in order. */
  readonly phases: EnterPhaseRequest[] = []
  readonly gradeWorlds = new Set<string>()
  readonly controlWorlds = new Set<string>()
  readonly stepWorlds = new Set<string>()
  /** Worlds as they were asked for, in order. */
  readonly opened: OpenGradeWorldRequest[] = []
  /** Sandboxes whose connections broke off with a daemon. */
  readonly cutOff = new Set<string>()
  readonly passed: PassFilesRequest[] = []
  readonly #options: SimulatedNodeOptions
  readonly #asked = new Map<string, AcquireRequest>()
  readonly #ended = new Map<string, SandboxEnded>()
  readonly #execs = new Map<string, Promise<NodeExecEnd>>()
  /** Of each sandbox the commands that have ended and are remembered, the oldest first. */
  readonly #over = new Map<string, Set<string>>()
  readonly #endings = new News<SandboxEnded>()
  /** Tells of calls of models. */
  readonly calls = new News<ModelCall>()

  constructor(options: SimulatedNodeOptions = {}) {
    this.#options = options
  }

  /** A sandbox ends by itself. `silent`: the news of it is lost. */
  kill(sandbox: string, kind: SandboxEnding, silent = false): void {
    this.#mustLive(sandbox)
    const ending = this.#end(sandbox, kind, { asked: false, detail: `killed: ${kind}` })
    if (!silent) this.#endings.tell(ending)
  }

  async acquire(request: AcquireRequest): Promise<NodeSandbox> {
    const known = this.living.get(request.sandbox)
    if (known) return known
    this.#mustNotHaveEnded(request.sandbox)
    this.#asked.set(request.sandbox, request)
    await this.#options.onAcquire?.(request)
    this.#mustNotHaveEnded(request.sandbox)
    if (this.living.size >= this.#capacity) throw new SandlotError('capacity', 'the node is full')
    const { sandbox, project, owner, epoch, image, resources } = request
    const made: NodeSandbox = {
      ...{ sandbox, project, owner, epoch, image, resources, node: this.node },
      ...{ state: 'running', tags: {}, env: {}, workdir: '/', user: 'root', createdAtMs: 0 },
      createMs: 5,
    }
    this.living.set(sandbox, made)
    this.acquired.push(sandbox)
    return made
  }

  async expect(request: ExpectRequest): Promise<void> {
    this.expected.push(request)
  }

  async release({ sandbox, reason, by }: ReleaseRequest): Promise<SandboxEnded> {
    const ending = this.#end(sandbox, 'stopped', { asked: true, detail: reason })
    if (by === 'other') this.#endings.tell(ending)
    return ending
  }

  exec(request: NodeExecRequest): Promise<NodeExecEnd> {
    const running = this.#execs.get(request.exec) ?? this.#run(request)
    this.#execs.set(request.exec, running)
    running.then(() => this.#forgetOldest(request)).catch(() => {})
    return running
  }

  async killExec({ exec }: { readonly exec: string }): Promise<{ processes: number }> {
    this.killed.push(exec)
    await this.#options.onKill?.(exec)
    return { processes: 1 }
  }

  async hasExec({ exec }: { readonly exec: string }): Promise<boolean> {
    return this.#execs.has(exec)
  }

  async knownExecs({ sandbox }: { readonly sandbox: string }): Promise<ReadonlySet<string>> {
    this.#mustLive(sandbox)
    return new Set(this.#execs.keys())
  }

  async openGradeWorld(request: OpenGradeWorldRequest): Promise<void> {
    const { sandbox, world = 'grade' } = request
    this.#mustLive(sandbox)
    this.opened.push(request)
    await this.#options.onOpenGradeWorld?.(sandbox, world)
    this.#worldsOf(world).add(sandbox)
  }

  async endWorld({ sandbox, world }: EndWorldRequest): Promise<void> {
    this.#mustLive(sandbox)
    this.#worldsOf(world).delete(sandbox)
  }

  async passFiles(request: PassFilesRequest): Promise<void> {
    this.#mustLive(request.sandbox)
    this.passed.push(request)
  }

  async enterPhase(request: EnterPhaseRequest): Promise<void> {
    this.#mustLive(request.sandbox)
    this.phases.push(request)
  }

  async putFiles(request: PutFilesRequest): Promise<void> {
    this.#mustLive(request.sandbox)
    await this.#options.onPut?.(request)
    this.files.push(request)
  }

  async collectFiles(request: CollectFilesRequest, wait?: NodeWait): Promise<CollectedFiles> {
    this.#mustLive(request.sandbox)
    return (await this.#options.onCollect?.(request, wait)) ?? { artifacts: [], leftOut: [] }
  }

  async readFile(request: ReadFileRequest): Promise<Uint8Array | undefined> {
    this.#mustLive(request.sandbox)
    const text = await this.#options.onRead?.(request)
    return text === undefined ? undefined : Buffer.from(text)
  }

  async find(sandbox: string): Promise<NodeSandbox | SandboxEnded | undefined> {
    return this.living.get(sandbox) ?? this.#ended.get(sandbox)
  }

  async list(): Promise<NodeSandbox[]> {
    return [...this.living.values()]
  }

  endings({ signal }: { readonly signal: AbortSignal }): AsyncIterable<SandboxEnded> {
    return this.#endings.read(signal)
  }

  modelCalls({ signal }: { readonly signal: AbortSignal }): AsyncIterable<ModelCall> {
    return this.calls.read(signal)
  }

  async capacity(): Promise<NodeCapacity> {
    const sandboxes = this.#capacity
    return { node: this.node, sandboxes, free: sandboxes - this.living.size, creating: 1_000 }
  }

  get #capacity(): number {
    return this.#options.capacity ?? 1_000_000
  }

  async #run(request: NodeExecRequest): Promise<NodeExecEnd> {
    this.#mustLive(request.sandbox)
    const { world = 'main' } = request
    if (world !== 'main' && !this.#worldsOf(world).has(request.sandbox)) {
      throw new SandlotError('invalid_request', 'the world is not open')
    }
    this.started.push(request)
    const empty = new Uint8Array()
    const found = await (this.#options.onExec?.(request) ?? {})
    this.#mustLive(request.sandbox)
    return {
      ...{ exec: request.exec, exitCode: 0, signal: null, timedOut: false, killed: false },
      ...{ durationMs: 1, stdout: empty, stderr: empty, left: 0, limits: [] },
      ...{ stdoutTotalBytes: 0, stdoutDroppedBytes: 0, stderrTotalBytes: 0, stderrDroppedBytes: 0 },
      ...found,
    }
  }

  #forgetOldest({ sandbox, exec }: NodeExecRequest): void {
    const { remembered = Number.POSITIVE_INFINITY } = this.#options
    const ended = (this.#over.get(sandbox) ?? new Set()).add(exec)
    this.#over.set(sandbox, ended)
    for (const oldest of ended) {
      if (ended.size <= remembered) return
      ended.delete(oldest)
      this.#execs.delete(oldest)
    }
  }

  #worldsOf(world: GraderWorld): Set<string> {
    if (world === 'grade') return this.gradeWorlds
    return world === 'control' ? this.controlWorlds : this.stepWorlds
  }

  #end(sandbox: string, kind: SandboxEnding, how: { asked: boolean; detail: string }) {
    const before = this.#ended.get(sandbox)
    if (before) return before
    const { project = '', owner = '', epoch = 0, image = '' } = this.#asked.get(sandbox) ?? {}
    const ended: SandboxEnded = {
      ...{ sandbox, node: this.node, project, owner, epoch, image, kind, atMs: 0, flags: [] },
      ...how,
      ...(this.gradeWorlds.has(sandbox) ? { gradeOpened: true } : {}),
      ...(this.cutOff.has(sandbox) ? { cutOff: true } : {}),
      usage: { cpuMs: 1, memoryBytes: 0, memoryPeakBytes: 2, diskBytes: 3, networkBytes: 0 },
    }
    this.living.delete(sandbox)
    this.#ended.set(sandbox, ended)
    return ended
  }

  #mustLive(sandbox: string): void {
    if (this.living.has(sandbox)) return
    this.#mustNotHaveEnded(sandbox)
    throw new SandlotError('sandbox_unknown', `no sandbox ${sandbox}`)
  }

  #mustNotHaveEnded(sandbox: string): void {
    const ending = this.#ended.get(sandbox)
    if (ending === undefined) return
    throw new SandlotError('sandbox_gone', `${sandbox} has ended`, { details: { ending } })
  }
}
