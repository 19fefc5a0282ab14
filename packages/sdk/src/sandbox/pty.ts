/** Commands at a terminal. A lost connection is found again where it broke; the terminal goes on meanwhile. */
import {
  type ExecEnd,
  newId,
  SandlotError,
  type Terminal,
  type TerminalSize,
} from '@sandlot/protocol'
import { asSandlotError, toError } from '../connection/failure.ts'
import { unknownOption } from '../connection/unknown-option.ts'
import { type ExecTarget, tooLong } from './exec.ts'
import { readChunks } from './exec-chunks.ts'
import { ExecLife, type ExecStart } from './exec-life.ts'
import type { ExecChunk } from './exec-result.ts'

export interface PtyOptions {
  /** Default: the shell of the sandbox: `SHELL` of its environment, or /bin/bash, or /bin/sh. */
  readonly command?: string | readonly string[]
  /** In characters, 1 to 4,096 each. */
  readonly size: TerminalSize
  /** What it is told as `TERM`. Default `xterm-256color`. */
  readonly term?: string
  /** On top of the sandbox's own environment. */
  readonly env?: Record<string, string>
  /** Default: the sandbox's working directory. */
  readonly cwd?: string
  /** A name, or `uid[:gid]`. Default: the image's user. */
  readonly user?: string
  /** At the deadline everything in the terminal is killed. `'30s'` or milliseconds. Default: none. */
  readonly timeout?: string | number
  /** Kills what runs in it, and rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

export interface PtyAttachOptions {
  /** Where to read from: the `offset` of somebody who read it before. Default 0: all that is kept, the last 256 KiB. */
  readonly from?: number
  /** Changes its size to this. */
  readonly size?: TerminalSize
  /** Lets go of the terminal, which goes on, and rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** A piece of what a terminal showed. */
export type PtyChunk = Omit<ExecChunk, 'channel'>

/** What the terminals of a sandbox are reached by. */
export interface PtyTarget extends ExecTarget {
  readonly resize: (exec: string, size: TerminalSize) => Promise<unknown>
}

const OPTIONS: (keyof PtyOptions)[] = [
  ...(['command', 'size', 'term', 'env', 'cwd', 'user', 'timeout', 'signal'] as const),
]
const ATTACH_OPTIONS: (keyof PtyAttachOptions)[] = ['from', 'size', 'signal']
const STDIN = 0
const SIGKILL = 9
/** So long keys wait for a size of which nobody answers: on a connection that died unnoticed, say. */
const SIZED_MS = 5_000

/**
 * A terminal in a sandbox: `for await (const { text } of pty)` reads it, once; `write` types. One client at a time has it: who
 * attaches later takes it over, and the one before gets `cancelled`. A reader that stops reading holds its command up; without any
 * reader the terminal goes on, and keeps the last 256 KiB.
 */
export class Pty implements AsyncIterable<PtyChunk>, AsyncDisposable {
  /** `ex_…`: `sandbox.ptys.attach(id)` finds it again. */
  readonly id: string
  /** How its command ended. Rejects when it is lost, taken over (`cancelled`), or with the signal's reason. */
  readonly result: Promise<ExecEnd>
  readonly #target: PtyTarget
  readonly #life: ExecLife
  readonly #chunks: AsyncGenerator<PtyChunk>
  readonly #own: boolean
  #offset: number
  /** Keys and sizes go on ways of their own, of which neither waits for the other: this orders them. */
  #sized: Promise<unknown> = Promise.resolve()
  #sizes = 0

  /** @internal Made by `sandbox.pty` and `sandbox.ptys.attach`. */
  constructor(
    target: PtyTarget,
    id: string,
    plan: {
      readonly request?: ExecStart
      readonly from: number
      readonly refusal?: Error | undefined
      readonly signal?: AbortSignal | undefined
    },
  ) {
    const { request, from, refusal, signal } = plan
    this.id = id
    this.#target = target
    this.#own = request !== undefined
    this.#offset = from
    this.#life = new ExecLife({
      connection: target.connection,
      sandbox: target.sandbox,
      exec: id,
      request,
      from: { stdout: from, stderr: 0 },
      terminal: true,
      stdin: undefined,
      refusal: signal?.aborted ? toError(signal.reason) : refusal,
      kill: (number, wait) => target.kill(id, number, wait),
    })
    this.result = this.#life.end.promise
    this.#chunks = this.#read()
    const abort = () => this.#release(toError(signal?.reason))
    const forget = () => signal?.removeEventListener('abort', abort)
    signal?.addEventListener('abort', abort, { once: true })
    this.result.then(forget, forget)
  }

  /** Position behind what has been read: `attach(id, { from: offset })` goes on there. */
  get offset(): number {
    return this.#offset
  }

  [Symbol.asyncIterator](): AsyncIterator<PtyChunk> {
    return this.#chunks
  }

  /**
   * Types, after the sizes that were set before, unless their answer takes over five seconds. Waits while the daemon is away, or the terminal takes no more. Resolves when it is on its way: what is typed while a
   * connection breaks may be lost, with `connection_lost` where that is known. `cancelled`: the terminal has ended.
   */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    await this.#sized
    const leg = await this.#life.present
    if (!leg)
      throw new SandlotError('cancelled', 'the terminal has ended: nobody reads what is typed')
    try {
      if (bytes.length > 0) await leg.stream.send(STDIN, bytes)
    } catch (error) {
      throw asSandlotError(error)
    }
  }

  /**
   * Changes its size; what runs in its foreground is told by SIGWINCH. Of several at once the last holds, and others may be left
   * out. One that has ended is left alone.
   */
  async resize(size: TerminalSize): Promise<void> {
    const turn = ++this.#sizes
    const told = this.#sized.then(async () => {
      await this.#life.started
      if (turn === this.#sizes && !this.#life.isOver) await this.#target.resize(this.id, size)
    })
    this.#sized = settledWithin(told, SIZED_MS)
    await told
  }

  /** Signals everything in it; 9 ends it all. One that has ended is left alone. */
  async kill(signal = SIGKILL): Promise<void> {
    await this.#life.started
    if (!this.#life.isOver) await this.#target.kill(this.id, signal, undefined)
  }

  /** Lets go of it; it goes on, and `sandbox.ptys.attach(id)` finds it again. `result` rejects with `cancelled`. */
  detach(): void {
    this.#life.leave(new SandlotError('cancelled', 'the terminal was detached'))
  }

  /** Kills what runs in one that `sandbox.pty` made; lets go of one that was attached to. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#release(new SandlotError('cancelled', 'the terminal was disposed of'))
  }

  /** @internal Resolves once it runs, or ran; rejects where it can't. */
  async ready(): Promise<this> {
    await Promise.race([this.result, this.#life.started])
    return this
  }

  async #release(reason: Error): Promise<void> {
    if (this.#own) await this.#life.giveUp(reason)
    else this.#life.leave(reason)
  }

  async *#read(): AsyncGenerator<PtyChunk> {
    for await (const { channel: _, ...chunk } of readChunks(this.#life)) {
      this.#offset = chunk.offset + chunk.bytes.length
      yield chunk
    }
  }
}

/** Resolves when the other has settled, or that takes too long. */
function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    timer.unref?.()
    const settled = () => {
      clearTimeout(timer)
      resolve()
    }
    work.then(settled, settled)
  })
}

/** Starts a command at a terminal of its own. */
export async function startPty(target: PtyTarget, options: PtyOptions): Promise<Pty> {
  const { signal, command } = options
  const id = newId('exec')
  const refusal = unknownOption(options, OPTIONS) ?? tooLong(command ?? [], options.env)
  const request = startRequest(target, id, options)
  return await new Pty(target, id, { request, from: 0, refusal, signal }).ready()
}

/** Finds a terminal that somebody started. */
export async function attachPty(
  target: PtyTarget,
  id: string,
  options: PtyAttachOptions,
): Promise<Pty> {
  const { from = 0, size, signal } = options
  const refusal = unknownOption(options, ATTACH_OPTIONS)
  const pty = await new Pty(target, id, { from, refusal, signal }).ready()
  if (size) await pty.resize(size)
  return pty
}

function startRequest(
  target: PtyTarget,
  exec: string,
  { command, size, term, env, cwd, user, timeout }: PtyOptions,
): ExecStart {
  const terminal: Terminal = { ...size, ...(term === undefined ? {} : { term }) }
  return {
    op: 'exec.start',
    sandbox: target.sandbox,
    world: target.world,
    exec,
    stdin: true,
    mode: 'stream',
    terminal,
    ...(command === undefined
      ? {}
      : { command: typeof command === 'string' ? command : [...command] }),
    ...(env ? { env } : {}),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    ...(timeout === undefined ? {} : { timeout }),
  }
}
