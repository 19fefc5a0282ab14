import {
  advance,
  type Effect,
  type InputBody,
  nextDueMs,
  type Run,
  type RunEvent,
  type Step,
  saveRun,
} from '@sandlot/core'
import type { Clock } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { DeadlineKey, Deadlines } from './deadlines.ts'
import type { EventJournal } from './event-journal.ts'
import { COORDINATOR_LIMITS } from './limits.ts'

/** Called once the input's events are durable; `ignored` says why core took no notice of it. */
export type Settled = (answer: Answer) => void
export type Answer =
  | { readonly ok: true; readonly ignored?: string }
  | { readonly ok: false; readonly error: unknown }

/** The run's coordinator has let go of it: it is over, or has to be read back. Look it up again. */
export class RunStopped extends Error {
  override readonly name = 'RunStopped'
}

export interface ActorOptions {
  readonly run: Run
  readonly journal: EventJournal
  readonly clock: Clock
  readonly deadlines: Deadlines
  /** Whether what was decided waits for the disk so long that nothing more should be decided. `resume` is called when that is over. */
  isJammed(): boolean
  /** In order, each batch's effects when its events are durable. Never throws. */
  perform(effects: readonly Effect[]): void
  /** A decision broke half-way: the run in memory can't be trusted any more. */
  failed(error: unknown): void
}

interface Waiting {
  readonly make: InputBody | ((run: Run) => readonly InputBody[])
  readonly settled: Settled | undefined
}

/**
 * The one who decides for a run. Inputs wait in a queue; a turn takes all that are there, lets core decide on each, and hands the
 * events of all of them to the journal as one batch. Effects are performed and answers are given when the batch is durable.
 */
export class RunActor implements DeadlineKey {
  /** As it stands in memory: ahead of the log by what is in flight. Read it, never change it. */
  readonly run: Run
  readonly #options: ActorOptions
  #waiting: Waiting[] = []
  #scheduled = false
  #stopped = false
  /** Core has decisions left over. */
  #more = false

  constructor(options: ActorOptions) {
    this.run = options.run
    this.#options = options
  }

  get inputsWaiting(): number {
    return this.#waiting.length
  }

  /** Begins, with what recovery decided as the first batch. */
  start(first: Step | undefined): void {
    const batch = new Turn(this.run, this.#options.clock)
    if (first) batch.addStep(first)
    this.#end(batch)
  }

  post(input: InputBody, settled?: Settled): void {
    this.#enqueue({ make: input, settled })
  }

  /** Inputs that are made at the moment of the decision; what `make` throws is the answer, and nothing is decided. */
  decide(make: (run: Run) => readonly InputBody[], settled: Settled): void {
    this.#enqueue({ make, settled })
  }

  /** Decides nothing more. What waits is answered with `RunStopped`. */
  stop(): void {
    this.#stopped = true
    for (const { settled } of this.#waiting.splice(0)) settled?.(STOPPED)
    this.#options.deadlines.set(this, undefined)
  }

  /** What was waited for has become durable. */
  resume(): void {
    if (this.#waiting.length > 0 || this.#more) this.#schedule()
  }

  due(): void {
    this.post({ type: 'tick' })
  }

  #enqueue(item: Waiting): void {
    if (this.#stopped) {
      item.settled?.(STOPPED)
      return
    }
    this.#waiting.push(item)
    this.#schedule()
  }

  /** After the events of the poll phase, so that all that came in together is decided on together. */
  #schedule(): void {
    if (this.#scheduled || this.#stopped) return
    this.#scheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#scheduled = false
    const { clock, failed, isJammed } = this.#options
    if (this.#stopped || isJammed()) return
    const turn = new Turn(this.run, clock)
    const taken = this.#waiting
    const count = Math.min(taken.length, COORDINATOR_LIMITS.inputsPerTurn)
    this.#waiting = taken.slice(count)
    try {
      if (this.#more) turn.add({ type: 'tick' })
      for (let index = 0; index < count; index++) turn.decideOn(taken[index] as Waiting)
    } catch (error) {
      turn.forget()
      for (const { settled } of taken.slice(0, count)) settled?.(STOPPED)
      this.stop()
      failed(error)
      return
    }
    this.#end(turn)
  }

  #end(turn: Turn): void {
    const { journal, deadlines, perform } = this.#options
    this.#more = turn.more
    if (!turn.isEmpty) {
      journal.write({
        events: turn.events,
        ...(journal.isCheckpointDue(stateBytes(this.run)) ? { state: encodeState(this.run) } : {}),
        durable: () => {
          perform(turn.effects)
          for (const [settled, answer] of turn.answers) settled(answer)
          this.resume()
        },
        forgotten: () => turn.forget(),
      })
    }
    deadlines.set(this, this.#more ? undefined : (nextDueMs(this.run) ?? undefined))
    this.resume()
  }
}

/** What one turn decided. */
class Turn {
  readonly events: RunEvent[] = []
  readonly effects: Effect[] = []
  readonly answers: [Settled, Answer][] = []
  more = false
  readonly #run: Run
  readonly #clock: Clock

  constructor(run: Run, clock: Clock) {
    this.#run = run
    this.#clock = clock
  }

  get isEmpty(): boolean {
    return this.events.length === 0 && this.effects.length === 0 && this.answers.length === 0
  }

  decideOn({ make, settled }: Waiting): void {
    try {
      let ignored: string | undefined
      for (const input of typeof make === 'function' ? make(this.#run) : [make]) {
        ignored = this.add(input)
      }
      if (settled)
        this.answers.push([settled, ignored === undefined ? DONE : { ok: true, ignored }])
    } catch (error) {
      // A refusal has changed nothing. Anything else is a fault of ours, and so is a refusal that nobody hears.
      if (!(error instanceof SandlotError) || settled === undefined) throw error
      this.answers.push([settled, { ok: false, error }])
    }
  }

  add(input: InputBody): string | undefined {
    return this.addStep(advance(this.#run, { ...input, nowMs: this.#clock.now() }))
  }

  addStep(step: Step): string | undefined {
    for (const event of step.events) this.events.push(event)
    for (const effect of step.effects) this.effects.push(effect)
    this.more = step.more
    return step.ignored
  }

  forget(): void {
    for (const [settled] of this.answers.splice(0)) settled(STOPPED)
  }
}

function encodeState(run: Run): Uint8Array {
  return Buffer.from(JSON.stringify(saveRun(run)))
}

function stateBytes({ keys, live, index }: Run): number {
  const { checkpointKeyBytes, checkpointWaitingBytes, checkpointAdmittedBytes } = COORDINATOR_LIMITS
  return (
    keys.size * checkpointKeyBytes +
    live.size * checkpointWaitingBytes +
    index.slots.size * checkpointAdmittedBytes
  )
}

const DONE: Answer = { ok: true }
const STOPPED: Answer = { ok: false, error: new RunStopped('the run was let go of') }
