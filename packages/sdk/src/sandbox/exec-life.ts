import { type ConnectRequestInput, type ExecEnd, execEnd, SandlotError } from '@sandlot/protocol'
import type { MuxStream } from '@sandlot/protocol/frames'
import type { Connection } from '../connection/connection.ts'
import { type Deferred, deferred } from '../connection/deferred.ts'
import { asSandlotError, isCode, isOutage } from '../connection/failure.ts'
import { type ByteSource, bytesOf, isWhole } from './bytes.ts'
import { ExecOutput, type OutputOffsets } from './exec-output.ts'

export type ExecStart = Extract<ConnectRequestInput, { op: 'exec.start' }>

/** What a command is run with. */
export interface ExecPlan {
  readonly connection: Connection
  readonly sandbox: string
  readonly exec: string
  /** Starts it. Undefined: it runs, or ran, and is found `from` where somebody read it to. */
  readonly request: ExecStart | undefined
  readonly from?: OutputOffsets
  /** It runs at a terminal, which is typed at over `present`. */
  readonly terminal?: true
  /** `true`: written to later. */
  readonly stdin: ByteSource | true | undefined
  /** Why it is not even started. */
  readonly refusal?: Error | undefined
  /** Signals the command, wherever it runs. */
  readonly kill: (signal: number, wait: AbortSignal) => Promise<unknown>
}

/** A command as one connection sees it. */
export interface ExecLeg {
  readonly stream: MuxStream
  readonly output: ExecOutput
  /** The leg after this one, or undefined when the command has ended; rejects when it is lost. */
  readonly next: Deferred<ExecLeg | undefined>
}

const STDIN = 0
const FROM_START: OutputOffsets = { stdout: 0, stderr: 0 }
/** How long a command that is given up may take to come up and be killed. */
const KILL_MS = 10_000
/** Starts of a command that never arrived. */
const STARTS_MAX = 3

/**
 * A command from its start to its end, over as many connections as that takes.
 *
 * | state | how it is entered | what holds |
 * |---|---|---|
 * | starting | made | the request is under way; sent again, the daemon knows it by its id |
 * | attached | the daemon says `started` | output comes; a lost connection is replaced by one from the byte that came last |
 * | over | its result, a failure, or `giveUp` | `end` is settled; what was given up is killed as soon as it is known to run |
 */
export class ExecLife {
  readonly end = deferred<ExecEnd>()
  readonly first = deferred<ExecLeg | undefined>()
  readonly #plan: ExecPlan
  readonly #started = deferred<void>()
  readonly #driving: Promise<void>
  #over = false
  /** The daemon said that it runs, on this connection or an earlier one. */
  #runs = false
  /** Whether the daemon has handed all of stdin over. */
  #stdinTaken: boolean
  #leg: ExecLeg | undefined
  /** The leg on which it is known to run, or the next one. */
  #present = deferred<ExecLeg | undefined>()
  #isPresent = false
  #left = false
  /** Who waits for the next leg. */
  #latest: Deferred<ExecLeg | undefined> = this.first

  constructor(plan: ExecPlan) {
    this.#plan = plan
    this.#stdinTaken = plan.stdin === undefined
    if (plan.refusal) this.#settle(plan.refusal)
    this.#driving = this.#drive()
  }

  get isOver(): boolean {
    return this.#over
  }

  /** Resolves once it runs, or can't any more. */
  get started(): Promise<void> {
    return this.#started.promise
  }

  /** How the command is reached now; waits while the daemon is away. Undefined when it has ended; rejects when it is lost. */
  get present(): Promise<ExecLeg | undefined> {
    return this.#present.promise
  }

  /** Settles everything with the reason now; the command goes on, and can be found again. */
  leave(reason: Error): void {
    if (this.#over) return
    this.#left = true
    this.#settle(reason)
    this.#leg?.stream.abort(reason)
  }

  /** Settles everything with the reason now, and kills the command. Resolves when that is done, or took too long. */
  async giveUp(reason: Error): Promise<void> {
    if (this.#over) return
    this.#settle(reason)
    const deadline = new AbortController()
    const late = new Promise<void>((resolve) => {
      deadline.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const timer = setTimeout(() => deadline.abort(), KILL_MS)
    await Promise.race([this.started, late])
    if (this.#runs) await this.#plan.kill(9, deadline.signal).catch(() => undefined)
    this.#leg?.stream.abort(reason)
    await Promise.race([this.#driving, late])
    clearTimeout(timer)
  }

  async #drive(): Promise<void> {
    const { connection, request } = this.#plan
    const outage = connection.outage()
    let starts = 0
    let attaches = !request
    while (!this.#over) {
      try {
        const from = this.#leg?.output.end ?? this.#plan.from ?? FROM_START
        if (!attaches) starts++
        const asked = attaches || !request ? attachRequest(this.#plan, from) : request
        const stream = await connection.open(asked)
        if (this.#left) stream.abort(new SandlotError('cancelled', 'it was left'))
        this.#enter(stream, from, { attached: attaches, onNews: () => outage.over() })
        if (!attaches) void this.#feed(stream)
        attaches = true
        this.#finish(execEnd.parse(await stream.done))
      } catch (thrown) {
        const error = asSandlotError(thrown)
        if (this.#over) break
        this.#lose()
        const arrived = this.#runs || !isCode(error, 'exec_unknown')
        if (request && !arrived && starts < STARTS_MAX && this.#canFeedAgain()) attaches = false
        else if (isOutage(error)) {
          await outage.wait(error).catch((last) => this.#settle(last))
        } else this.#settle(attaches && request ? forgotten(error, this.#runs) : error)
      }
    }
    this.#started.resolve()
  }

  #enter(
    stream: MuxStream,
    from: OutputOffsets,
    { attached, onNews }: { readonly attached: boolean; readonly onNews: () => void },
  ): void {
    const output = new ExecOutput(stream, from)
    const leg: ExecLeg = { stream, output, next: deferred() }
    stream.onEvent = (event) => {
      onNews()
      if (event.kind === 'offset') output.mark(event)
      else if (event.kind === 'stdin') this.#stdinTaken = true
      else if (event.kind === 'started') {
        this.#runs = true
        this.#started.resolve()
        this.#present.resolve(leg)
        this.#isPresent = true
        if (attached && !this.#stdinTaken) this.#loseStdin()
      }
    }
    this.#leg = leg
    this.#latest.resolve(leg)
    this.#latest = leg.next
  }

  /** Who waits for the next leg goes on waiting, however many tries it takes. */
  #lose(): void {
    if (this.#isPresent) this.#present = deferred()
    this.#isPresent = false
  }

  /** What of its stdin arrived can't be told: going on could feed it half of something. */
  #loseStdin(): void {
    const message = 'the connection broke while the command was being fed; it was killed'
    void this.giveUp(new SandlotError('connection_lost', message))
  }

  #canFeedAgain(): boolean {
    const { stdin } = this.#plan
    return stdin === undefined || isWhole(stdin)
  }

  async #feed(stream: MuxStream): Promise<void> {
    const { stdin } = this.#plan
    if (stdin === undefined || stdin === true) return
    const source = bytesOf(stdin)
    try {
      for (;;) {
        const next = await source.next().catch((error) => ({ failed: error as unknown }))
        if ('failed' in next) {
          await this.giveUp(new Error('the source of stdin failed', { cause: next.failed }))
          return
        }
        if (next.done) break
        await stream.send(STDIN, next.value)
      }
      stream.end(STDIN)
    } catch {
      // A command that ends before it has read everything is no failure; a lost one is told by `end`.
      if (!isWhole(stdin)) await source.return(undefined).catch(() => undefined)
    }
  }

  #finish(end: ExecEnd): void {
    this.#over = true
    this.end.resolve({ ...end, exec: this.#plan.exec })
    this.#latest.resolve(undefined)
    this.#lose()
    this.#present.resolve(undefined)
  }

  #settle(error: unknown): void {
    this.#over = true
    this.end.reject(error)
    this.#latest.reject(error)
    this.#lose()
    this.#present.reject(error)
  }
}

/** A command that is not known after a lost connection: its result is lost, or it never began; neither is the caller's fault. */
function forgotten(error: unknown, runs: boolean): unknown {
  if (!isCode(error, 'exec_unknown')) return error
  const message = runs
    ? 'the command ran, but nobody knows its result any more'
    : 'the connection broke before the command had begun; it did not run'
  return new SandlotError('connection_lost', message, { cause: error })
}

function attachRequest(
  { sandbox, exec, terminal }: ExecPlan,
  from: OutputOffsets,
): ConnectRequestInput {
  return {
    ...(terminal ? { terminal } : {}),
    op: 'exec.attach',
    sandbox,
    exec,
    stdoutFrom: from.stdout,
    stderrFrom: from.stderr,
  }
}
