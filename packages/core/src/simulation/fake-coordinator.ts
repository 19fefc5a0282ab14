import { SandlotError } from '@sandlot/protocol'
import { advance, nextDueMs, recover } from '../run/advance.ts'
import type { Step } from '../run/decision.ts'
import type { Effect } from '../run/effect.ts'
import type { InputBody } from '../run/input.ts'
import type { Run } from '../run/run.ts'
import { createFakeJournal, type FakeJournal } from './fake-journal.ts'
import type { World } from './world.ts'

/** The server's part: a run in memory, a journal that survives it, and a timer. */
export interface FakeCoordinator {
  /** null while it is down. */
  readonly run: Run | null
  readonly journal: FakeJournal
  /** Steps so far. */
  readonly steps: number
  /** False while it is down. */
  tell(input: InputBody, durable?: () => void): boolean
  /** SIGKILL: what was not appended never happened. */
  die(): void
  start(): void
}

export interface CoordinatorHooks {
  perform(effect: Effect): void
  /** After each step, of the input that led to it. */
  check(run: Run, step: Step, input: InputBody): void
  /** The process is killed here, at the worst of moments. */
  crash(): void
  /** The live state, and what the log gives, when the log has everything. */
  compare(live: Run, replayed: Run): void
  /** It is back: look at what nodes and workers have. */
  started(): void
}

interface Taken {
  readonly step: Step
  readonly durable: (() => void) | undefined
}

export function createFakeCoordinator(world: World, hooks: CoordinatorHooks): FakeCoordinator {
  const { timeline, random, scenario } = world
  const { faults } = scenario
  const journal = createFakeJournal(scenario.policy, timeline.nowMs)
  let run: Run | null = null
  let life = 0
  let steps = 0
  let pending: Taken[] = []
  let doing: Taken[] = []

  function take(step: Step, input: InputBody, durable?: () => void): void {
    steps++
    if (run) hooks.check(run, step, input)
    // A disk that stalls lets decisions grow old before they are done.
    const [least, most] = random.chance(faults.diskStalls) ? [1_000, 8_000] : [0.1, 5]
    if (pending.length === 0) during(random.between(least, most), flush)
    pending.push({ step, durable })
  }

  /** Only what is in the log is done. */
  function flush(): void {
    const batch = pending
    pending = []
    for (const { step } of batch) journal.append(step.events)
    if (run && steps % 50 === 0) hooks.compare(run, journal.replayed)
    if (run && random.chance(0.05)) journal.checkpoint(run)
    if (random.chance(faults.crashesAtFlush)) {
      hooks.crash()
      return
    }
    if (doing.length === 0) during(random.between(0, 3), perform)
    doing.push(...batch)
    setTimer()
  }

  /** In the order of the log: rows are recorded by their seq. */
  function perform(): void {
    const batch = doing
    doing = []
    for (const { step, durable } of batch) {
      for (const effect of step.effects) {
        performOne(effect)
        if (!random.chance(faults.crashesAtFlush / 4)) continue
        hooks.crash()
        return
      }
      durable?.()
    }
  }

  function performOne(effect: Effect): void {
    const through = record(journal, effect)
    if (through === undefined) hooks.perform(effect)
    else during(random.between(0, 20), () => tell({ type: 'results_recorded', through }))
  }

  /** The process does it after a while, unless it is killed first. */
  function during(delayMs: number, what: () => void): void {
    const mine = life
    timeline.after(delayMs, () => {
      if (life === mine && run) what()
    })
  }

  function setTimer(): void {
    const dueMs = run && nextDueMs(run)
    if (dueMs === null) return
    during(Math.max(1, dueMs - timeline.nowMs), () => {
      const due = run && nextDueMs(run)
      if (due !== null && due <= timeline.nowMs) tell({ type: 'tick' })
    })
  }

  function tell(input: InputBody, durable?: () => void): boolean {
    if (!run) return false
    try {
      take(advance(run, { nowMs: timeline.nowMs, ...input }), input, durable)
    } catch (error) {
      if (!isRefusal(error) || !world.truth.cancelled) throw error
      durable?.() // refused is answered
    }
    return true
  }

  return {
    get run() {
      return run
    },
    journal,
    get steps() {
      return steps
    },
    tell,
    die() {
      life++
      run = null
      pending = []
      doing = []
    },
    start() {
      run = journal.load()
      hooks.compare(run, journal.replayed)
      // From the very beginning not each time: it takes longer with every crash.
      if (steps % 4 === 0) hooks.compare(run, journal.replay())
      // Whoever does not look at the results asks for rows again that are there: once is enough.
      const recordedThrough = random.chance(0.3) ? 0 : journal.lastSeq
      const step = recover(run, timeline.nowMs, recordedThrough)
      take(step, { type: 'recovered', recordedThrough })
      hooks.started()
    },
  }
}

/** The `seq` of what is durable then; undefined for an effect that is no record. */
function record(journal: FakeJournal, effect: Effect): number | undefined {
  if (effect.type === 'append_result') journal.record(effect.seq, effect.row)
  else if (effect.type === 'append_group') journal.recordGroup(effect.seq, effect.group)
  else return undefined
  return effect.seq
}

function isRefusal(error: unknown): boolean {
  return error instanceof SandlotError && error.code === 'run_closed'
}
