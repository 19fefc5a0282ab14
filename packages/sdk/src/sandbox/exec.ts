/** Commands in a sandbox. A lost connection is found again by the command's id, so a command never runs twice. */
import { type ConnectRequest, type ExecEnd, newId, SandlotError } from '@sandlot/protocol'
import type { MuxStream } from '@sandlot/protocol/frames'
import { asSandlotError, type Connection, isConnectionLoss } from '../connection/connection.ts'
import { toError } from '../connection/http.ts'
import { type ByteSource, bytesOf } from './bytes.ts'
import type { ExecChunk, ExecResult } from './exec-result.ts'

export type World = 'main' | 'grade'

export interface ExecOptions {
  /** On top of the sandbox's own environment. */
  readonly env?: Record<string, string>
  /** Default: the sandbox's working directory. */
  readonly cwd?: string
  /** A name, or `uid[:gid]`. Default: the image's user. */
  readonly user?: string
  /** At the deadline everything the command started is killed, and the result says `timedOut`. `'30s'` or milliseconds. */
  readonly timeout?: string | number
  /** What the command reads from its stdin. Default: nothing, end of file at once. */
  readonly stdin?: ByteSource
  /** Kills the command, and rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

export interface ExecTarget {
  readonly connection: Connection
  readonly sandbox: string
  readonly world: World
  /** Signals a command; the handle's `kill`. */
  readonly kill: (exec: string, signal: number) => Promise<unknown>
}

const STDIN = 0
const STDOUT = 1
const STDERR = 2

type ExecStart = Extract<ConnectRequest, { op: 'exec.start' }>

/** Runs a command to its end and returns all of its output (head and tail of a flood). */
export async function runExec(
  target: ExecTarget,
  command: string | readonly string[],
  options: ExecOptions,
): Promise<ExecResult> {
  const execution = new ExecStream(target, command, options, 'buffered')
  const parts: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  for await (const chunk of execution) parts[chunk.channel].push(chunk.bytes)
  const end = await execution.result
  const stdoutBytes = concatenate(parts.stdout)
  const stderrBytes = concatenate(parts.stderr)
  return {
    ...end,
    stdout: new TextDecoder().decode(stdoutBytes),
    stderr: new TextDecoder().decode(stderrBytes),
    stdoutBytes,
    stderrBytes,
    stdoutDroppedBytes: end.stdout.droppedBytes,
    stderrDroppedBytes: end.stderr.droppedBytes,
  }
}

/**
 * A command whose output is read while it runs: `for await (const { channel, text } of execution)`.
 * A slow reader slows the command down; leaving the loop early detaches from it. `await using` kills it.
 */
export class ExecStream implements AsyncIterable<ExecChunk>, AsyncDisposable {
  /** `ex_…` */
  readonly id: string
  /** How it ended. Rejects when the sandbox or the daemon is lost, or the signal was aborted. */
  readonly result: Promise<ExecEnd>
  readonly #target: ExecTarget
  readonly #request: ExecStart
  readonly #signal: AbortSignal | undefined
  readonly #offsets = { stdout: 0, stderr: 0 }
  readonly #chunks: AsyncGenerator<ExecChunk>
  #stream: Promise<MuxStream>
  #settle: { resolve: (end: ExecEnd) => void; reject: (error: unknown) => void }
  #ended = false

  constructor(
    target: ExecTarget,
    command: string | readonly string[],
    options: ExecOptions,
    mode: 'stream' | 'buffered' = 'stream',
  ) {
    this.id = newId('exec')
    this.#target = target
    this.#signal = options.signal
    this.#request = startRequest(target, this.id, command, options, mode)
    const { promise, resolve, reject } = Promise.withResolvers<ExecEnd>()
    this.result = promise
    this.result.catch(() => undefined)
    this.#settle = { resolve, reject }
    this.#stream = this.#start()
    this.#stream.catch((error) => this.#fail(error))
    if (options.stdin !== undefined) this.#feed(options.stdin)
    options.signal?.addEventListener('abort', this.#abort, { once: true })
    if (options.signal?.aborted) this.#abort()
    this.#chunks = this.#read()
  }

  [Symbol.asyncIterator](): AsyncIterator<ExecChunk> {
    return this.#chunks
  }

  /** Writes to its stdin; only with `stdin: 'open'` is there one that stays open. Resolves when the command side took it. */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    await (await this.#stream).send(STDIN, bytes)
  }

  /** Closes its stdin. */
  async closeStdin(): Promise<void> {
    ;(await this.#stream).end(STDIN)
  }

  /** Signals it and all it started; 9 ends them all. */
  async kill(signal = 9): Promise<void> {
    if (!this.#ended) await this.#target.kill(this.id, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill().catch(() => undefined)
    await this.#stream.then((stream) => stream.abort(new Error('disposed'))).catch(() => undefined)
    this.#fail(new SandlotError('cancelled', 'the command was disposed of'))
  }

  async #start(): Promise<MuxStream> {
    try {
      return await this.#target.connection.open(this.#request)
    } catch (error) {
      if (!isConnectionLoss(error)) throw error
      return await this.#reattach()
    }
  }

  /** The command is found again by its id; one that never arrived is started now. */
  async #reattach(): Promise<MuxStream> {
    const { connection, sandbox } = this.#target
    await connection.reconnect(this.#signal)
    const { stdout, stderr } = this.#offsets
    const attached = await connection.open({
      op: 'exec.attach',
      sandbox,
      exec: this.id,
      stdoutFrom: stdout,
      stderrFrom: stderr,
    })
    return attached
  }

  async *#read(): AsyncGenerator<ExecChunk> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    let starts = 1
    for (;;) {
      try {
        const stream = await this.#stream
        yield* this.#readStream(stream, decoders)
        this.#finish((await stream.done) as unknown as ExecEnd)
        return
      } catch (thrown) {
        if (this.#signal?.aborted) throw this.#fail(toError(this.#signal.reason))
        const error = asSandlotError(thrown)
        if (isUnknownExec(error) && starts++ < 3)
          this.#stream = this.#target.connection.open(this.#request)
        else if (isConnectionLoss(error)) this.#stream = this.#reattach()
        else throw this.#fail(error)
        this.#stream.catch(() => undefined)
      }
    }
  }

  async *#readStream(
    stream: MuxStream,
    decoders: Record<'stdout' | 'stderr', InstanceType<typeof TextDecoder>>,
  ): AsyncGenerator<ExecChunk> {
    let dropped = 0
    stream.onEvent = (event) => {
      if (event.kind !== 'offset') return
      dropped += Number(event.droppedBytes ?? 0)
      this.#offsets[event.channel === STDERR ? 'stderr' : 'stdout'] = Number(event.offset)
    }
    for await (const { channel: number, bytes } of stream.readAll([STDOUT, STDERR])) {
      const channel = number === STDERR ? 'stderr' : 'stdout'
      const offset = this.#offsets[channel]
      this.#offsets[channel] += bytes.length
      yield {
        channel,
        bytes,
        offset,
        droppedBytes: dropped,
        text: decoders[channel].decode(bytes, { stream: true }),
      }
      dropped = 0
    }
  }

  async #feed(source: ByteSource): Promise<void> {
    try {
      const stream = await this.#stream
      if (source === 'open') return
      for await (const bytes of bytesOf(source)) await stream.send(STDIN, bytes)
      stream.end(STDIN)
    } catch {
      // A command that ends before it has read everything is no failure; a lost one is told by `result`.
    }
  }

  #abort = (): void => {
    this.kill().catch(() => undefined)
    this.#stream.then((stream) => stream.abort(this.#signal?.reason)).catch(() => undefined)
    this.#fail(toError(this.#signal?.reason))
  }

  #finish(end: ExecEnd): void {
    this.#ended = true
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#settle.resolve({ ...end, exec: this.id })
  }

  #fail(error: unknown): unknown {
    const told = asSandlotError(error)
    this.#ended = true
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#settle.reject(told)
    return told
  }
}

function startRequest(
  target: ExecTarget,
  exec: string,
  command: string | readonly string[],
  options: ExecOptions,
  mode: 'stream' | 'buffered',
): ExecStart {
  const { env, cwd, user, timeout } = options
  return {
    op: 'exec.start',
    sandbox: target.sandbox,
    world: target.world,
    exec,
    command: typeof command === 'string' ? command : [...command],
    stdin: options.stdin !== undefined,
    mode,
    ...(env ? { env } : {}),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    // The daemon parses durations: the wire takes what the user wrote.
    ...(timeout === undefined ? {} : { timeout: timeout as number }),
  }
}

function isUnknownExec(error: unknown): boolean {
  return error instanceof SandlotError && error.code === 'exec_unknown'
}

function concatenate(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0] as Uint8Array
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let position = 0
  for (const part of parts) {
    whole.set(part, position)
    position += part.length
  }
  return whole
}
