import type { ExecView, SandboxView } from '@sandlot/protocol'
import type { Endpoint } from '../config.ts'
import type { Connection } from '../connection/connection.ts'
import { request, requestJson } from '../connection/http.ts'
import { type ExecOptions, ExecStream, type ExecTarget, runExec, type World } from './exec.ts'
import type { ExecResult } from './exec-result.ts'
import { Files, type Waiting } from './files.ts'

export interface SandboxContext {
  readonly connection: Connection
  readonly endpoint: () => Promise<Endpoint>
}

/**
 * One isolated environment. `await using sandbox = await client.sandboxes.create(…)` stops it at the end of the block.
 * Inside an episode its lease stops it.
 */
export class Sandbox implements AsyncDisposable {
  /** `sb_…` */
  readonly id: string
  readonly files: Files
  readonly #context: SandboxContext
  readonly #world: World
  readonly #signal: AbortSignal | undefined

  /** Made by `client.sandboxes` and by episodes. `signal` ends everything that waits in it. */
  constructor(
    context: SandboxContext,
    id: string,
    options: { world?: World; signal?: AbortSignal } = {},
  ) {
    this.id = id
    this.#context = context
    this.#world = options.world ?? 'main'
    this.#signal = options.signal
    this.files = new Files({ ...context, sandbox: id, world: this.#world })
  }

  /**
   * Runs a command: an argument array, or text for `sh -c`. Resolves with its result, whatever its exit code;
   * rejects only when the platform fails, or the command can't be started (`exec_failed`).
   * With `stream: true` it returns at once, and its output is read while it runs.
   */
  exec(command: string | readonly string[], options: ExecOptions & { stream: true }): ExecStream
  exec(
    command: string | readonly string[],
    options?: ExecOptions & { stream?: false },
  ): Promise<ExecResult>
  exec(
    command: string | readonly string[],
    options: ExecOptions & { stream?: boolean } = {},
  ): ExecStream | Promise<ExecResult> {
    const { stream, ...rest } = options
    const signal = anySignal(options.signal, this.#signal)
    const own = signal ? { ...rest, signal } : rest
    return stream
      ? new ExecStream(this.#target(), command, own)
      : runExec(this.#target(), command, own)
  }

  /** The commands that run or ran in it, the last 256. */
  async execs(options: Waiting = {}): Promise<ExecView[]> {
    const page = await this.#json<{ items: ExecView[] }>('listExecs', options)
    return page.items
  }

  /** What is still kept of a command's output, both channels together or one of them. */
  async *output(
    exec: string,
    options: Waiting & { channel?: 'stdout' | 'stderr' } = {},
  ): AsyncGenerator<Uint8Array> {
    const answer = await request(await this.#context.endpoint(), 'readLog', {
      parameters: { id: this.id, exec },
      query: { channel: options.channel },
      signal: options.signal,
    })
    if (answer.body) yield* answer.body as unknown as AsyncIterable<Uint8Array>
  }

  /** How it stands now; a stopped one tells how it ended. */
  async view(options: Waiting = {}): Promise<SandboxView> {
    return await this.#json<SandboxView>('getSandbox', options)
  }

  /** Ends it with everything that runs in it. Idempotent. */
  async stop(options: Waiting = {}): Promise<SandboxView> {
    return await this.#json<SandboxView>('stopSandbox', options)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #json<T>(
    route: 'getSandbox' | 'stopSandbox' | 'listExecs',
    { signal }: Waiting,
  ): Promise<T> {
    return await requestJson<T>(await this.#context.endpoint(), route, {
      parameters: { id: this.id },
      signal,
    })
  }

  #target(): ExecTarget {
    return {
      connection: this.#context.connection,
      sandbox: this.id,
      world: this.#world,
      kill: async (exec, signal) =>
        await request(await this.#context.endpoint(), 'killExec', {
          parameters: { id: this.id, exec },
          json: { signal },
        }),
    }
  }
}

function anySignal(
  first: AbortSignal | undefined,
  second: AbortSignal | undefined,
): AbortSignal | undefined {
  if (!first || !second) return first ?? second
  return AbortSignal.any([first, second])
}
