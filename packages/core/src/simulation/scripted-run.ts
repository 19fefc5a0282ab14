import type { RunCreate } from '@sandlot/protocol'
import { advance } from '../run/advance.ts'
import { apply } from '../run/apply.ts'
import type { Step } from '../run/decision.ts'
import type { Effect, UnrecordedGroup, UnrecordedRow } from '../run/effect.ts'
import type { RunEvent } from '../run/event.ts'
import { initialRun } from '../run/initial.ts'
import type { InputBody } from '../run/input.ts'
import { compileRun } from '../run/policy.ts'
import type { Run } from '../run/run.ts'
import { saveRun } from '../run/saved.ts'
import type { EffectOf } from './world.ts'

/** A run that a test drives by hand, with its own clock. */
export interface ScriptedRun {
  readonly run: Run
  readonly events: RunEvent[]
  readonly effects: readonly Effect[]
  readonly rows: UnrecordedRow[]
  readonly groups: UnrecordedGroup[]
  nowMs: number
  /** Time passes, in steps as a timer would make them; workers are heard meanwhile. */
  pass(ms: number): void
  /** Time passes, and nobody is heard. */
  passInSilence(ms: number): void
  tell(input: InputBody): Step
  /** Tasks `a`, `b`, …; returns when all are put. */
  put(count: number, more?: object): void
  /** The latest effect of a kind, and its address. */
  last<T extends Effect['type']>(type: T): EffectOf<T>
  count(type: Effect['type']): number
  /** Brings the newest attempt as far as its worker's start. */
  toAgent(): EffectOf<'offer_lease'>
  /** The outcome of the row that came last. */
  row(): UnrecordedRow
  /** A run that the log gives, to be compared. */
  replayed(): Run
}

export function scriptedRun(spec: Partial<RunCreate> = {}): ScriptedRun {
  const policy = compileRun(
    { concurrency: 4, ...spec },
    { run: 'rn_scriptedrunscripted0', from: 'sha256:image' },
  )
  const run = initialRun(policy, 1_000)
  const events: RunEvent[] = []
  const effects: Effect[] = []
  const rows: UnrecordedRow[] = []
  const groups: UnrecordedGroup[] = []
  let seq = 0
  let put = 0

  const script: ScriptedRun = {
    run,
    events,
    effects,
    rows,
    groups,
    nowMs: 1_000,
    pass(ms) {
      const until = script.nowMs + ms
      while (script.nowMs < until) {
        for (const { name, detachedAtMs } of [...run.workers.values()]) {
          if (detachedAtMs === null) script.tell({ type: 'worker_renewed', worker: name })
        }
        script.passInSilence(Math.min(500, until - script.nowMs))
      }
    },
    passInSilence(ms) {
      const until = script.nowMs + ms
      while (script.nowMs < until) {
        script.nowMs = Math.min(until, script.nowMs + 500)
        script.tell({ type: 'tick' })
      }
    },
    tell(input) {
      const step = advance(run, { nowMs: script.nowMs, ...input })
      events.push(...step.events)
      for (const effect of step.effects) {
        effects.push(effect)
        if (!('seq' in effect) || effect.seq <= seq) continue
        seq = effect.seq
        if (effect.type === 'append_result') rows.push(effect.row)
        else groups.push(effect.group)
      }
      return step
    },
    put(count, more = {}) {
      const tasks = Array.from({ length: count }, () => {
        const key = String.fromCharCode(97 + (put % 26)) + (put++ < 26 ? '' : put)
        return { key, digest: `of ${key}`, taskJson: '{}', taskBlob: null, seed: put, ...more }
      })
      script.tell({ type: 'tasks_put', tasks })
    },
    last(type) {
      const found = effects.findLast((effect) => effect.type === type)
      if (!found) throw new Error(`no effect ${type}`)
      return found as EffectOf<typeof type>
    },
    count: (type) => effects.filter((effect) => effect.type === type).length,
    toAgent() {
      const { episode, attempt } = script.last('acquire_sandbox')
      const sandbox = `sb_${episode}_${attempt}`
      script.tell({ type: 'sandbox_ready', episode, attempt, sandbox, node: 'n', createMs: 5 })
      if (policy.setup) script.tell({ type: 'setup_done', ...addressOf(script.last('run_setup')) })
      const offer = script.last('offer_lease')
      script.tell({ type: 'lease_taken', ...addressOf(offer) })
      return offer
    },
    row() {
      const row = rows.at(-1)
      if (!row) throw new Error('no row yet')
      return row
    },
    replayed() {
      const again = initialRun(policy, 1_000)
      for (const event of events) apply(again, JSON.parse(JSON.stringify(event)) as RunEvent)
      return again
    },
  }
  return script
}

/** The fenced address of an effect, as its answers carry it. */
export function addressOf(effect: {
  readonly episode: number
  readonly attempt: number
  readonly token: number
}) {
  const { episode, attempt, token } = effect
  return { episode, attempt, token }
}

/** A run as text: equal texts are equal runs. */
export function textOf(run: Run): string {
  return JSON.stringify(saveRun(run))
}
