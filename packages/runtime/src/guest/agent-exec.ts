import type { MuxStream } from '@sandlot/protocol/frames'
import { ConnectionLost } from '@sandlot/protocol/frames'
import { ExecOffsets } from './exec-offsets.ts'
import type {
  ExecChunk,
  ExecHandle,
  ExecInput,
  ExecOffsets as ExecPositions,
  ExecResult,
} from './guest.ts'
import { GuestError, GuestTimeout } from './guest-error.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'
import * as messages from './messages.ts'
import { translated } from './transfer.ts'

const STDIN = 0
const STDOUT = 1
const STDERR = 2

/** Throws where more has ended than the command whose end this is. */
export type VetEnd = (result: ExecResult) => Promise<void>

interface Reading {
  readonly op: 'exec.start' | 'exec.attach'
  readonly stream: MuxStream
  readonly exec: string
  readonly from: ExecPositions
  readonly vet: VetEnd | undefined
}

/** A reader of one exec, over the stream of `exec.start` or `exec.attach`. */
export class AgentExec implements ExecHandle {
  readonly exec: string
  readonly started: Promise<{ pid: number }>
  readonly stdin: ExecInput
  readonly output: AsyncIterable<ExecChunk>
  readonly result: Promise<ExecResult>
  readonly #link: GuestLink
  readonly #stream: MuxStream
  readonly #offsets: Record<typeof STDOUT | typeof STDERR, ExecOffsets>
  #sayStarted: ((started: { pid: number }) => void) | undefined

  constructor(link: GuestLink, { op, stream, exec, from, vet }: Reading) {
    this.#link = link
    this.#stream = stream
    this.exec = exec
    this.#offsets = {
      [STDOUT]: new ExecOffsets('stdout', from.stdoutFrom),
      [STDERR]: new ExecOffsets('stderr', from.stderrFrom),
    }
    stream.onEvent = (event) => this.#heard(event)
    const answer = link.answer(op, stream, messages.execResult)
    this.result = vet ? answer.then(async (result) => await vet(result).then(() => result)) : answer
    this.started = this.#starting(op)
    this.stdin = {
      write: (bytes) => this.#write(bytes),
      end: () => stream.end(STDIN),
    }
    this.output = this.#read()
  }

  detach(): void {
    this.abort(new GuestError('cancelled', 'the reader of the command was detached'))
  }

  /** Detaches; everything of this reader rejects with the reason. */
  abort(reason: unknown): void {
    this.#stream.abort(reason)
  }

  #starting(op: string): Promise<{ pid: number }> {
    const started = new Promise<{ pid: number }>((resolve, reject) => {
      const timer = setTimeout(
        () => this.abort(new GuestTimeout(op, GUEST_LIMITS.startMs)),
        GUEST_LIMITS.startMs,
      )
      this.#sayStarted = (value) => {
        clearTimeout(timer)
        resolve(value)
      }
      this.result
        .then(() => this.#sayStarted?.({ pid: 0 }), reject)
        .finally(() => clearTimeout(timer))
    })
    started.catch(ignore)
    return started
  }

  #heard(event: Record<string, unknown>): void {
    if (event.kind === 'started') {
      const { pid } = this.#link.parse('the start of a command', event, messages.execStarted)
      this.#sayStarted?.({ pid })
    } else if (event.kind === 'offset') {
      const { channel, offset } = this.#link.parse('an offset', event, messages.execOffset)
      const marks = this.#offsets[channel].mark(this.#stream.receivedBytes(channel), offset)
      if (marks > GUEST_LIMITS.offsetEvents) throw this.#link.breach('too many offsets')
    }
  }

  async #write(bytes: Uint8Array): Promise<boolean> {
    try {
      await this.#stream.send(STDIN, bytes)
      return true
    } catch (error) {
      if (error instanceof ConnectionLost) throw this.#link.failure(error)
      return false
    }
  }

  #read(): AsyncIterable<ExecChunk> {
    const chunks = this.#stream.readAll([STDOUT, STDERR])[Symbol.asyncIterator]()
    const placed: ExecChunk[] = []
    const next = async (): Promise<IteratorResult<ExecChunk>> => {
      let chunk = placed.shift()
      while (!chunk) {
        const came = await translated(this.#link, chunks.next())
        if (came.done) return { done: true, value: undefined }
        placed.push(...this.#place(came.value.channel, came.value.bytes))
        chunk = placed.shift()
      }
      return { done: false, value: chunk }
    }
    const leave = async (): Promise<IteratorResult<ExecChunk>> => {
      await chunks.return?.()
      return { done: true, value: undefined }
    }
    return { [Symbol.asyncIterator]: () => ({ next, return: leave }) }
  }

  #place(channel: number, bytes: Uint8Array): ExecChunk[] {
    return this.#offsets[channel === STDERR ? STDERR : STDOUT].place(bytes)
  }
}

/** A handle for a command that could not even be asked for. */
export function failedExec(exec: string, error: unknown): ExecHandle {
  const failed = Promise.reject(error)
  failed.catch(ignore)
  return {
    exec,
    started: failed,
    result: failed,
    stdin: { write: async () => false, end: ignore },
    output: { [Symbol.asyncIterator]: () => ({ next: () => failed }) },
    detach: ignore,
  }
}

function ignore(): void {}
