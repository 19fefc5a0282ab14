import type { FateKind } from '../driver.ts'
import type { ExecResult, TerminalSize } from '../guest/guest.ts'
import { GuestError } from '../guest/guest-error.ts'
import type { FakeClock, FakeReply } from './script.ts'

/**
 * One command of a fake sandbox, from its start to its end.
 *
 * ```
 * replying ──▶ running ──▶ ended        the script's promise, then `delayMs`, then the result
 *     └───────────┴── kill, deadline, end of the world ──▶ ended by signal 9
 * ```
 */
export class FakeExec {
  readonly exec: string
  readonly world: string
  readonly argv: readonly string[]
  readonly pid: number
  readonly startedAtMs: number
  readonly result: Promise<ExecResult>
  /** There as soon as the script replied. */
  readonly replied: Promise<void>
  stdout: Uint8Array = EMPTY
  stderr: Uint8Array = EMPTY
  running = true
  /** Of the one that it runs at. */
  terminal: TerminalSize | undefined
  /** Resolves when more is printed than there was. */
  more = Promise.withResolvers<void>()

  readonly #clock: FakeClock
  readonly #onDeath: (kind: FateKind) => void
  readonly #abort = new AbortController()
  readonly #result = Promise.withResolvers<ExecResult>()
  readonly #replied = Promise.withResolvers<void>()
  #types: FakeReply['types']
  #endReader: (() => void) | undefined
  #cancels: (() => void)[] = []

  constructor(options: {
    exec: string
    world: string
    argv: readonly string[]
    pid: number
    timeoutMs: number | undefined
    terminal: TerminalSize | undefined
    clock: FakeClock
    onDeath: (kind: FateKind) => void
  }) {
    this.exec = options.exec
    this.world = options.world
    this.argv = options.argv
    this.pid = options.pid
    this.terminal = options.terminal
    this.#clock = options.clock
    this.#onDeath = options.onDeath
    this.startedAtMs = options.clock.now()
    this.result = this.#result.promise
    this.replied = this.#replied.promise
    this.result.catch(() => {})
    if (options.timeoutMs !== undefined) {
      this.#after(options.timeoutMs, () => this.#end({ signal: 9, timedOut: true, killed: true }))
    }
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Takes the script's reply, when it comes. */
  perform(reply: FakeReply | Promise<FakeReply>): void {
    if (reply instanceof Promise) {
      reply.then(
        (value) => this.#take(value),
        (error) => this.fail(error instanceof Error ? error : new Error(String(error))),
      )
    } else this.#take(reply)
  }

  /** True when there was something to kill. */
  kill(signal: number): boolean {
    if (!this.running) return false
    this.#end({ signal, killed: true })
    return true
  }

  /** There is one reader at a time: the one before is told that it is over. */
  readBy(tell: () => void): void {
    this.#endReader?.()
    this.#endReader = tell
  }

  /** False where nobody reads what is typed. */
  type(bytes: Uint8Array): boolean {
    if (!this.running || !this.terminal || !this.#types) return false
    const { prints = '', exitCode } = this.#types(Buffer.from(bytes).toString(), this.terminal)
    this.stdout = Buffer.concat([this.stdout, Buffer.from(prints)])
    this.more.resolve()
    this.more = Promise.withResolvers()
    if (exitCode !== undefined) this.#end({ exitCode })
    return true
  }

  resize(size: TerminalSize): void {
    if (!this.terminal) throw new GuestError('invalid', `${this.exec} has no terminal`)
    this.terminal = size
    this.type(EMPTY)
  }

  /** Ends without a result: the sandbox is gone, or the script threw. */
  fail(error: Error): void {
    if (!this.running) return
    this.#stop()
    this.#result.reject(error)
  }

  #take(reply: FakeReply): void {
    if (!this.running) return
    this.stdout = bytesOf(reply.stdout)
    this.stderr = bytesOf(reply.stderr)
    this.#replied.resolve()
    this.#types = reply.types
    if (reply.hangs || (this.terminal && reply.types)) return
    this.#after(reply.delayMs ?? 0, () => {
      if (reply.dies) return this.#onDeath(reply.dies)
      const { signal, left = 0, limits = [] } = reply
      this.#end(
        signal === undefined
          ? { exitCode: reply.exitCode ?? 0, left, limits }
          : { signal, left, limits },
      )
    })
  }

  #after(delayMs: number, call: () => void): void {
    if (delayMs <= 0) call()
    else this.#cancels.push(this.#clock.after(delayMs, call))
  }

  #end(how: Partial<ExecResult>): void {
    if (!this.running) return
    this.#stop()
    this.#result.resolve({
      timedOut: false,
      killed: false,
      left: 0,
      limits: [],
      durationUs: Math.round((this.#clock.now() - this.startedAtMs) * 1000),
      counts: { stdout: count(this.stdout), stderr: count(this.stderr) },
      ...how,
    })
  }

  #stop(): void {
    this.running = false
    for (const cancel of this.#cancels) cancel()
    this.#cancels = []
    this.#replied.resolve()
    this.#abort.abort(new GuestError('cancelled', `${this.exec} ended`))
  }
}

const EMPTY = new Uint8Array()

function bytesOf(output: string | Uint8Array | undefined): Uint8Array {
  if (output === undefined) return EMPTY
  return typeof output === 'string' ? Buffer.from(output) : output
}

function count(bytes: Uint8Array) {
  return { totalBytes: bytes.length, droppedBytes: 0 }
}
