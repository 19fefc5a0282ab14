/** Commands in a sandbox. A lost connection is found again by the command's id, so a command never runs twice. */
import {
  argumentBytes,
  type ExecEnd,
  environmentBytes,
  LIMITS,
  newId,
  SandlotError,
  startProblem,
} from '@sandlot/protocol'
import type { Connection } from '../connection/connection.ts'
import { asSandlotError, toError } from '../connection/failure.ts'
import { unknownOption } from '../connection/unknown-option.ts'
import { type ByteSource, concatenate, textOf } from './bytes.ts'
import { readChunks } from './exec-chunks.ts'
import { ExecLife, type ExecStart } from './exec-life.ts'
import type { ExecChunk, ExecResult } from './exec-result.ts'

export type World = 'main' | 'grade'

export interface ExecOptions {
  /** On top of the sandbox's own environment. */
  readonly env?: Record<string, string>
  /** Default: the sandbox's working directory. */
  readonly cwd?: string
  /** A name, or `uid[:gid]`. Default: the image's user. */
  readonly user?: string
  /** At the deadline everything the command started is killed, and the result says `timedOut`. `'30s'` or milliseconds. Default: none. */
  readonly timeout?: string | number
  /**
   * What the command reads from its stdin. Default: nothing, end of file at once. A connection that breaks while the command is being
   * fed ends it with `connection_lost`: what it got can't be told.
   */
  readonly stdin?: ByteSource
  /** Kills the command, and rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

export interface ExecStreamOptions extends Omit<ExecOptions, 'stdin'> {
  /** As for a buffered command; `true` keeps it open for `write` until `closeStdin`. */
  readonly stdin?: ByteSource | true
}

export interface ExecTarget {
  readonly connection: Connection
  readonly sandbox: string
  readonly world: World
  /** Signals a command; the handle's `kill`. */
  readonly kill: (
    exec: string,
    signal: number,
    wait: AbortSignal | undefined,
  ) => Promise<{ readonly processes: number }>
}

const OPTIONS: (keyof ExecStreamOptions)[] = ['env', 'cwd', 'user', 'timeout', 'stdin', 'signal']
const STDIN = 0
const SIGKILL = 9

/** Runs a command to its end and returns all of its output (head and tail of a flood). */
export async function runExec(
  target: ExecTarget,
  command: string | readonly string[],
  options: ExecOptions,
): Promise<ExecResult> {
  const execution = new ExecStream(target, command, options, 'buffered')
  const parts: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  for await (const { channel, bytes } of execution) parts[channel].push(bytes)
  const end = await execution.result
  const stdoutBytes = concatenate(parts.stdout)
  const stderrBytes = concatenate(parts.stderr)
  return {
    ...end,
    stdout: textOf(stdoutBytes),
    stderr: textOf(stderrBytes),
    stdoutBytes,
    stderrBytes,
    stdoutDroppedBytes: end.stdout.droppedBytes,
    stderrDroppedBytes: end.stderr.droppedBytes,
  }
}

/**
 * A command whose output is read while it runs, once: `for await (const { channel, text } of execution)`.
 * A slow reader slows the command down; leaving the loop early lets it run on unread. `await using` kills it.
 */
export class ExecStream implements AsyncIterable<ExecChunk>, AsyncDisposable {
  /** `ex_…` */
  readonly id: string
  /**
   * How it ended. Rejects when it can't be started, when the sandbox or the daemon is lost, or with the signal's reason.
   * A command that prints more than 256 KiB waits for its reader: read the output, or use `wait`.
   */
  readonly result: Promise<ExecEnd>
  readonly #target: ExecTarget
  readonly #life: ExecLife
  readonly #chunks: AsyncGenerator<ExecChunk>

  constructor(
    target: ExecTarget,
    command: string | readonly string[],
    options: ExecStreamOptions,
    mode: 'stream' | 'buffered' = 'stream',
  ) {
    const { signal, stdin } = options
    this.id = newId('exec')
    this.#target = target
    this.#life = new ExecLife({
      connection: target.connection,
      exec: this.id,
      sandbox: target.sandbox,
      request: startRequest(target, this.id, command, options, mode),
      stdin,
      refusal: signal?.aborted
        ? toError(signal.reason)
        : (unknownOption(options, OPTIONS) ?? tooLong(command, options.env)),
      kill: (number, wait) => target.kill(this.id, number, wait),
    })
    this.result = this.#life.end.promise
    this.#chunks = readChunks(this.#life)
    const abort = () => void this.#life.giveUp(toError(signal?.reason))
    const release = () => signal?.removeEventListener('abort', abort)
    signal?.addEventListener('abort', abort, { once: true })
    this.result.then(release, release)
  }

  [Symbol.asyncIterator](): AsyncIterator<ExecChunk> {
    return this.#chunks
  }

  /** How it ended, without what it printed and nobody has read yet. */
  async wait(): Promise<ExecEnd> {
    for await (const _ of this.#chunks);
    return await this.result
  }

  /** Writes to its stdin, with `stdin: true`. Resolves when the daemon takes it. */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    try {
      await (await this.#stdin()).send(STDIN, bytes)
    } catch (error) {
      throw asSandlotError(error)
    }
  }

  /** Closes its stdin, behind what was written. */
  async closeStdin(): Promise<void> {
    ;(await this.#stdin()).end(STDIN)
  }

  /** Signals it and all it started; 9 ends them all. One that has ended is left alone. */
  async kill(signal = SIGKILL): Promise<void> {
    await this.#life.started
    if (!this.#life.isOver) await this.#target.kill(this.id, signal, undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#life.giveUp(new SandlotError('cancelled', 'the command was disposed of'))
  }

  async #stdin() {
    const leg = await this.#life.first.promise
    if (leg && !this.#life.isOver) return leg.stream
    throw new SandlotError('cancelled', 'the command has ended: it takes no more input')
  }
}

/** What no daemon takes is refused before it is sent: it may not even fit a message. */
export function tooLong(
  command: string | readonly string[],
  env: Readonly<Record<string, string>> = {},
): SandlotError | undefined {
  const argv = typeof command === 'string' ? [command] : command
  const { argvBytes, envBytes } = LIMITS
  const problem =
    argumentBytes(argv) > argvBytes
      ? `the command is longer than ${argvBytes} bytes`
      : environmentBytes(Object.entries(env)) > envBytes
        ? `the environment of the command is longer than ${envBytes} bytes`
        : startProblem(argv, Object.entries(env))
  if (problem === undefined) return undefined
  return new SandlotError('too_large', problem, {
    hint: 'Write what is long to a file in the sandbox, and give its path to the command.',
  })
}

function startRequest(
  target: ExecTarget,
  exec: string,
  command: string | readonly string[],
  options: ExecStreamOptions,
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
    ...(timeout === undefined ? {} : { timeout }),
  }
}
