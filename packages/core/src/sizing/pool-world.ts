import { advance, nextDueMs } from '../run/advance.ts'
import type { Effect, UnrecordedGroup, UnrecordedRow } from '../run/effect.ts'
import { initialRun } from '../run/initial.ts'
import type { InputBody } from '../run/input.ts'
import { compileRun } from '../run/policy.ts'
import type { Run } from '../run/run.ts'
import { createTimeline, type Timeline } from '../simulation/timeline.ts'
import { createPoolAttempts, NODE } from './pool-attempts.ts'
import type { PoolSetting } from './pool-setting.ts'

/** A machine and a worker that do what core asks for, each thing in its time and nothing in vain. */
export interface PoolWorld {
  readonly run: Run
  readonly timeline: Timeline
  tell(input: InputBody): void
}

export interface PoolHooks {
  row(row: UnrecordedRow): void
  group(group: UnrecordedGroup): void
  finished(): void
}

const WORKER = 'worker'
const RENEW_MS = 15_000
/** Nothing is ended for want of time: what a pool is sized for is what its episodes take. */
const DAY_MS = 24 * 3_600_000

export function createPoolWorld(setting: PoolSetting, hooks: PoolHooks): PoolWorld {
  const timeline = createTimeline(0)
  const run = initialRun(policyOf(setting), 0)
  const attempts = createPoolAttempts(setting, timeline, (input) => tell(input))
  let timerMs: number | null = null
  let recorded = 0

  function tell(input: InputBody): void {
    const { effects } = advance(run, { nowMs: timeline.nowMs, ...input })
    for (const effect of effects) perform(effect)
    setTimer()
  }

  function setTimer(): void {
    const dueMs = nextDueMs(run)
    if (dueMs === null || run.status === 'finished') return
    const atMs = Math.max(dueMs, timeline.nowMs)
    if (timerMs !== null && timerMs <= atMs) return
    timerMs = atMs
    timeline.after(atMs - timeline.nowMs, () => {
      if (timerMs !== atMs) return
      timerMs = null
      tell({ type: 'tick' })
    })
  }

  function perform(effect: Effect): void {
    if (effect.type === 'append_result') {
      hooks.row(effect.row)
      record(effect.seq)
    } else if (effect.type === 'append_group') {
      hooks.group(effect.group)
      record(effect.seq)
    } else if (effect.type === 'status_changed') {
      if (effect.status === 'finished') hooks.finished()
    } else {
      attempts.perform(effect)
    }
  }

  /** Whatever is durable in the same moment is told at once. */
  function record(seq: number): void {
    const first = recorded === 0
    recorded = seq
    if (!first) return
    timeline.after(0, () => {
      const through = recorded
      recorded = 0
      tell({ type: 'results_recorded', through })
    })
  }

  const renew = () => {
    if (run.status === 'finished') return
    tell({ type: 'worker_renewed', worker: WORKER })
    timeline.after(RENEW_MS, renew)
  }
  attach(setting, tell)
  timeline.after(RENEW_MS, renew)
  return { run, timeline, tell }
}

/** What the machine grants, and a worker that has a place for every slot. */
function attach(setting: PoolSetting, tell: PoolWorld['tell']): void {
  const { concurrency, capacity, creating } = setting
  if (capacity !== null || creating !== null) {
    const granted = { sandboxes: capacity ?? concurrency, creating: creating ?? concurrency }
    tell({ type: 'node_capacity', node: NODE, ...granted })
  }
  tell({ type: 'worker_attached', worker: WORKER, slots: 2 * concurrency, held: [] })
}

function policyOf(setting: PoolSetting) {
  return compileRun(
    {
      concurrency: setting.concurrency,
      timeout: { create: DAY_MS, agent: DAY_MS, model: DAY_MS, grade: DAY_MS },
      ...(setting.ahead === null ? {} : { ahead: setting.ahead }),
      ...(setting.group ? { group: setting.group } : {}),
      ...(setting.hedge ? { hedge: setting.hedge } : {}),
      ...(setting.grade ? { grade: { kind: 'command', command: ['true'], in: 'world' } } : {}),
    },
    { run: 'rn_sizingsizingsizing00', from: 'sha256:simulated' },
  )
}
