import { decideGraded } from '../episode/decide-grade.ts'
import {
  decideEnded,
  decideModelEnded,
  decideModelStarted,
  decideNoted,
  decideReported,
  decideTaken,
} from '../episode/decide-report.ts'
import {
  decideFailed,
  decideLost,
  decideReady,
  decideSetupDone,
  decideSetupFailed,
  decideTornDown,
} from '../episode/decide-sandbox.ts'
import { cutDueMs } from '../group/cut.ts'
import { hedgeDueMs } from '../hedge/decide-hedges.ts'
import {
  decideAttached,
  decideDetached,
  decideLostWorker,
  decideRenewed,
} from '../worker/decide-worker.ts'
import {
  decideCancel,
  decideCapacity,
  decideGiveUp,
  decideGroupsRead,
  decidePause,
  decideRead,
  decideReading,
  decideRecorded,
  decideRecovered,
  decideResume,
  decideVersion,
} from './decide-status.ts'
import { decideClosed, decideTasks } from './decide-tasks.ts'
import type { Decision, Step } from './decision.ts'
import type { Input, InputBody, InputOf } from './input.ts'
import { expireDue, hasWork, pump } from './pump.ts'
import type { Run } from './run.ts'

/**
 * Decides what follows from one input, and takes it into the state.
 * @throws SandlotError where a caller asked for what may not be; the run is as it was.
 */
export function advance(run: Run, input: Input): Step {
  const step: Step = { events: [], effects: [], more: false }
  const nowMs = Number.isFinite(input.nowMs) ? Math.max(run.nowMs, input.nowMs) : run.nowMs
  const decision = { run, nowMs, step }
  const decide = DECIDE[input.type] as (decision: Decision, input: Input) => void
  decide(decision, input)
  pump(decision)
  step.more = hasWork(run)
  return step
}

/**
 * The first step after a restart: what has to be recorded, and every effect whose answer has not
 * come. `recordedThrough`: the last `seq` in the log of results, or 0.
 */
export function recover(run: Run, nowMs: number, recordedThrough: number): Step {
  return advance(run, { type: 'recovered', nowMs, recordedThrough })
}

/** When the next `tick` has something to do; null: only an input changes anything. */
export function nextDueMs(run: Run): number | null {
  if (hasWork(run)) return run.nowMs
  const episodeMs = run.index.due.peek()?.dueMs ?? Number.POSITIVE_INFINITY
  const workerMs = run.index.workersDue.peek()?.dueMs ?? Number.POSITIVE_INFINITY
  const others = [cutDueMs(run), hedgeDueMs(run)].filter((ms) => ms !== null)
  const dueMs = Math.min(episodeMs, workerMs, ...others)
  return Number.isFinite(dueMs) ? dueMs : null
}

const DECIDE: { [T in InputBody['type']]: (decision: Decision, input: InputOf<T>) => void } = {
  tasks_put: decideTasks,
  tasks_closed: decideClosed,
  sandbox_ready: decideReady,
  sandbox_failed: decideFailed,
  sandbox_lost: decideLost,
  torn_down: decideTornDown,
  setup_done: decideSetupDone,
  setup_failed: decideSetupFailed,
  worker_attached: decideAttached,
  worker_detached: decideDetached,
  worker_renewed: decideRenewed,
  worker_lost: decideLostWorker,
  lease_taken: decideTaken,
  model_started: decideModelStarted,
  model_ended: decideModelEnded,
  agent_ended: decideEnded,
  lease_noted: decideNoted,
  reported: decideReported,
  graded: decideGraded,
  results_recorded: decideRecorded,
  results_read: decideRead,
  groups_read: decideGroupsRead,
  reading: decideReading,
  tick: expireDue,
  cancel: decideCancel,
  pause: decidePause,
  resume: decideResume,
  give_up: decideGiveUp,
  node_capacity: decideCapacity,
  policy_version_set: decideVersion,
  recovered: decideRecovered,
}
