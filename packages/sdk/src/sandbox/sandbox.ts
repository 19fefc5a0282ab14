import {
  type ExecView,
  type ForkAnswer,
  type OnRestoreInput,
  type SandboxView,
  SandlotError,
  type SnapshotCreateInput,
  type SnapshotKind,
  type Tags,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { joinSignals } from '../connection/signals.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import type { Snapshot } from '../snapshot/snapshots.ts'
import {
  type ExecOptions,
  ExecStream,
  type ExecStreamOptions,
  runExec,
  type World,
} from './exec.ts'
import type { ExecResult } from './exec-result.ts'
import { Files } from './files.ts'
import { SandboxNetwork } from './network.ts'
import { Ports } from './ports.ts'
import { type Pty, type PtyOptions, type PtyTarget, startPty } from './pty.ts'
import { Ptys } from './ptys.ts'

/**
 * `exclude`: absolute paths below which it is as if nothing had been done. `onRestore`: a command that runs in each sandbox that begins
 * with the memory, before anybody has it.
 */
/** `kind`: default `filesystem`. */
export type SnapshotOptions = Omit<SnapshotCreateInput, 'kind'> & {
  readonly kind?: SnapshotKind
} & Waiting

export interface ForkOptions extends Waiting {
  /** `filesystem`: the files alone, of any sandbox. Default `memory`: what runs goes on in each copy. */
  readonly kind?: SnapshotKind
  /** Default: those of the sandbox. */
  readonly tags?: Tags
  /** Runs in each copy before anybody has it; one in which it fails is none. Of the kind `memory` alone. */
  readonly onRestore?: OnRestoreInput
}

/**
 * One isolated environment. `await using sandbox = await client.sandboxes.create(…)` stops it at the end of the block.
 * Inside an episode its lease stops it.
 */
export class Sandbox implements AsyncDisposable {
  /** `sb_…` */
  readonly id: string
  readonly files: Files
  /** Its terminals: `list`, `attach`, `kill`. */
  readonly ptys: Ptys
  readonly ports: Ports
  readonly network: SandboxNetwork
  readonly #context: ClientContext
  readonly #world: World
  readonly #signal: AbortSignal | undefined

  /** Made by `client.sandboxes` and by episodes. `signal` ends everything that waits in it. */
  constructor(
    context: ClientContext,
    id: string,
    options: { world?: World; signal?: AbortSignal } = {},
  ) {
    this.id = id
    this.#context = context
    this.#world = options.world ?? 'main'
    this.#signal = options.signal
    this.network = new SandboxNetwork(context, id, options.signal)
    this.files = new Files({ ...context, sandbox: id, world: this.#world, signal: options.signal })
    this.ptys = new Ptys(this.#target(), (waiting) => this.execs(waiting), options.signal)
    this.ports = new Ports({ ...context, sandbox: id, signal: options.signal })
  }

  /**
   * A terminal in it, with a shell or another command: for a person, and for programs that want one. The terminal lives in the
   * sandbox: a client that lost its connection, or another client, attaches to it again by its id (`sandbox.ptys.attach`).
   * Rejects when it can't be started (`exec_failed`).
   */
  async pty({ signal, ...options }: PtyOptions): Promise<Pty> {
    const joined = joinSignals(signal, this.#signal)
    const pty = startPty(this.#target(), { ...options, signal: joined.signal })
    const release = () => joined[Symbol.dispose]()
    pty.then(({ result }) => result.then(release, release), release)
    return await pty
  }

  /**
   * Runs a command: an argument array, or text for `sh -c`. Resolves with its result, whatever its exit code;
   * rejects only when the platform fails, or the command can't be started (`exec_failed`).
   * With `stream: true` it returns at once, and its output is read while it runs.
   */
  exec(
    command: string | readonly string[],
    options: ExecStreamOptions & { readonly stream: true },
  ): ExecStream
  exec(
    command: string | readonly string[],
    options?: ExecOptions & { readonly stream?: false },
  ): Promise<ExecResult>
  exec(
    command: string | readonly string[],
    options: ExecStreamOptions & { readonly stream?: boolean } = {},
  ): ExecStream | Promise<ExecResult> {
    const { stream, signal, ...rest } = options
    const joined = signal && this.#signal ? joinSignals(signal, this.#signal) : undefined
    const own = joined?.signal ?? signal ?? this.#signal
    const given = own ? { ...rest, signal: own } : rest
    const release = () => joined?.[Symbol.dispose]()
    if (stream) {
      const execution = new ExecStream(this.#target(), command, given)
      execution.result.then(release, release)
      return execution
    }
    return runExec(this.#target(), command, given as ExecOptions).finally(release)
  }

  /** The commands that run or ran in it, the last 256. */
  async execs(options: Waiting = {}): Promise<ExecView[]> {
    const page = await this.#json<{ items: ExecView[] }>('listExecs', options)
    return page.items
  }

  /** What is still kept of a command's output, both channels together or one of them. */
  async *output(
    exec: string,
    options: Waiting & { readonly channel?: 'stdout' | 'stderr' } = {},
  ): AsyncGenerator<Uint8Array> {
    using joined = joinSignals(options.signal, this.#signal)
    yield* this.#context.http.bytes('readLog', {
      parameters: { id: this.id, exec },
      query: { channel: options.channel },
      signal: joined.signal,
    })
  }

  /** How it stands now; a stopped one tells how it ended. */
  async view(options: Waiting = {}): Promise<SandboxView> {
    return await this.#json<SandboxView>('getSandbox', options)
  }

  /**
   * Its memory goes to disk, and nothing of it stays in the machine until `resume`: what runs in it goes on there. Streams end with
   * `sandbox_paused`. It survives a restart of the daemon, and no time passes for it. For one created with `checkpointable: true`.
   */
  async pause(options: Waiting = {}): Promise<SandboxView> {
    return await this.#json<SandboxView>('pauseSandbox', options)
  }

  /**
   * Saves what it has become; it goes on meanwhile. `filesystem`: its files, without what is below the paths of `exclude`. What is
   * written during the call is in it or not, file by file. `memory`: what runs in it besides, which goes on in all that start from
   * it; for one created with `checkpointable: true`.
   */
  async snapshot({
    signal,
    kind = 'filesystem',
    ...rest
  }: SnapshotOptions = {}): Promise<Snapshot> {
    using joined = joinSignals(signal, this.#signal)
    const parameters = { id: this.id }
    const request = { parameters, json: { kind, ...rest }, signal: joined.signal }
    return await this.#context.http.json<Snapshot>('createSnapshot', request)
  }

  /**
   * Running copies of it; it goes on. With its memory its processes go on in each: for one created with `checkpointable: true`. A
   * result for each: a sandbox, or the error of one that could not be made.
   */
  async fork(count: number, options: ForkOptions = {}): Promise<(Sandbox | SandlotError)[]> {
    refuseUnknown(options, ['kind', 'tags', 'onRestore', 'signal'])
    const { kind = 'memory', tags, onRestore } = options
    using joined = joinSignals(options.signal, this.#signal)
    const { items } = await this.#context.http.json<ForkAnswer>('forkSandbox', {
      parameters: { id: this.id },
      json: { count, kind, tags, onRestore },
      signal: joined.signal,
    })
    return items.map((item) =>
      'sandbox' in item
        ? new Sandbox(this.#context, item.sandbox.id)
        : SandlotError.fromEnvelope(item),
    )
  }

  /** It goes on where it was paused. Idempotent. Throws `capacity` while the machine has no room for it. */
  async resume(options: Waiting = {}): Promise<SandboxView> {
    return await this.#json<SandboxView>('resumeSandbox', options)
  }

  /** Ends it with everything that runs in it. Idempotent. */
  async stop(options: Waiting = {}): Promise<SandboxView> {
    const parameters = { id: this.id }
    return await this.#context.http.json('stopSandbox', { parameters, signal: options.signal })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #json<T>(
    route: 'getSandbox' | 'listExecs' | 'pauseSandbox' | 'resumeSandbox',
    { signal }: Waiting,
  ): Promise<T> {
    using joined = joinSignals(signal, this.#signal)
    const parameters = { id: this.id }
    return await this.#context.http.json<T>(route, { parameters, signal: joined.signal })
  }

  #target(): PtyTarget {
    const { connection, http } = this.#context
    return {
      connection,
      sandbox: this.id,
      world: this.#world,
      kill: async (exec, signal, wait) =>
        await http.json('killExec', {
          parameters: { id: this.id, exec },
          json: { signal },
          signal: wait,
        }),
      resize: async (exec, size) =>
        await http.json('resizeExec', { parameters: { id: this.id, exec }, json: size }),
    }
  }
}
