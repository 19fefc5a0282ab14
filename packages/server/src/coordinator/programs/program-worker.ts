import type { AttemptAddress, EpisodePhase } from '@sandlot/core'
import type { WorkerEventFromServer, WorkerReport } from '@sandlot/protocol'
import type { ModelCall } from '../../node/port.ts'
import { attemptOfLease, leaseId, programWorkerId } from '../ids.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'
import type { WorkerEvent, WorkerStream } from '../port.ts'
import type { SandboxWork } from '../sandboxes.ts'
import type { WorkerStreams } from '../worker-streams.ts'
import { type ProgramEnd, type ProgramLease, runProgram } from './run-program.ts'
import { createStepClock, type StepClock } from './step-clock.ts'

/**
 * The daemon as the worker of a run of programs: it takes leases as every worker does, so that all their rules hold, and is always there.
 * After a restart it comes back under the same name and goes on with what it had: the id of a command follows from its lease, and the
 * sandbox knows it by that.
 */
export interface ProgramWorker {
  /** A call of the model of an attempt began, or is over. */
  modelCalled(of: AttemptAddress, call: ModelCall): void
  /** From now on it takes nothing and says nothing. Idempotent. */
  close(): void
}

/**
 * held: its command runs ─▶ ended: said on each new stream until it is settled ─▶ gone.
 * One whose sandbox is gone has nothing to say, and is gone at once.
 */
interface Held extends ProgramLease {
  /** Aborted when the command is to end: its time is used up, or nobody wants it any more. */
  readonly stop: AbortController
  /** Of the step that it is at. */
  readonly time: StepClock
  /** Calls of its model that are under way, and why the last one that ended was of no use. */
  calls: number
  modelFailed?: string | undefined
  end?: ProgramEnd
}

export function openProgramWorker(work: SandboxWork, workers: WorkerStreams): ProgramWorker {
  const { record, actor, clock, signal } = work
  const worker = programWorkerId(record.id)
  const held = new Map<string, Held>()
  let stream: WorkerStream | undefined
  let closed = false
  let cancelRenewal = () => {}

  function attach() {
    if (closed || signal.aborted) return
    takeUp()
    const slots = record.specification.concurrency
    const request = { run: record.name, worker, slots, held: which() }
    const attached = workers.attach(request, { send: hear })
    stream = attached
    for (const lease of held.values()) say(lease)
    // It was taken for dead, or said more than could be decided on.
    attached.done.catch(() => clock.after(COORDINATOR_LIMITS.attachAgainMs, attach))
  }

  /** What the run says that this worker has, and it does not know of: an earlier daemon began it. */
  function takeUp() {
    for (const { index, attempt, phase, current } of actor.run.workers.get(worker)?.leases ?? []) {
      const token = current?.token ?? null
      if (token === null || !UNDER_WAY.has(phase)) continue
      const of = { episode: index, attempt, token }
      const lease = leaseId(of)
      if (!held.has(lease)) {
        // Its calls ended with the daemon that passed them on.
        const failed = phase === 'model' ? BROKE_OFF : current?.modelFailed
        if (phase === 'model') actor.post({ type: 'model_ended', ...of, failed: BROKE_OFF })
        begin({ lease, ...of }, failed)
      }
      if (phase === 'stopping' && current?.stopCause !== null) held.get(lease)?.stop.abort()
    }
  }

  function begin(lease: ProgramLease, modelFailed?: string) {
    const time = createStepClock(clock)
    const mine: Held = { ...lease, stop: new AbortController(), time, calls: 0, modelFailed }
    held.set(lease.lease, mine)
    void runProgram(work, lease, { stop: mine.stop.signal, time }).then((end) => {
      if (end === undefined) {
        held.delete(lease.lease)
        return
      }
      mine.end = end
      say(mine)
    })
  }

  function hear(event: WorkerEventFromServer) {
    switch (event.kind) {
      case 'lease': {
        const { lease } = event.lease
        const of = attemptOfLease(lease)
        if (of && !held.has(lease)) begin({ lease, ...of })
        return
      }
      case 'revoked':
        return held.get(event.lease)?.stop.abort()
      case 'settled':
        return void held.delete(event.lease)
      case 'draining':
        return
    }
  }

  function say(mine: Held) {
    const event = reportOf(mine)
    if (!closed && event) stream?.receive(event)
  }

  function renew() {
    stream?.receive({ kind: 'renew', leases: which(), lagMs: 0 })
    cancelRenewal = clock.after(COORDINATOR_LIMITS.renewMs, renew)
  }

  function which() {
    return [...held.values()].map(({ lease, token }) => ({ lease, token }))
  }

  attach()
  renew()
  return {
    modelCalled({ episode, attempt }, call) {
      const mine = [...held.values()].find(
        (each) => each.episode === episode && each.attempt === attempt && !each.end,
      )
      if (!mine) return
      const { token } = mine
      if (call.state === 'started') {
        mine.calls++
        mine.time.stand()
        actor.post({ type: 'model_started', episode, attempt, token })
        return
      }
      mine.modelFailed = call.failed
      mine.calls = Math.max(0, mine.calls - 1)
      if (mine.calls > 0) return
      mine.time.goOn()
      const failed = call.failed === undefined ? {} : { failed: call.failed }
      actor.post({ type: 'model_ended', episode, attempt, token, ...failed })
    },
    close() {
      closed = true
      cancelRenewal()
    },
  }
}

/** What is said of one that has ended. */
function reportOf({ lease, token, end, modelFailed, stop }: Held): WorkerEvent | undefined {
  if (end === undefined) return undefined
  const { artifacts, agentMs, fault } = end
  // Whatever the program made of it, the model did not answer. One that was ended for its time has met that.
  const wasEnded = stop.signal.aborted && agentMs === undefined
  const report: WorkerReport =
    modelFailed === undefined || wasEnded
      ? end.report
      : { kind: 'model_failed', cause: [modelFailed] }
  return {
    ...{ kind: 'report', lease, token, report, artifacts: [...artifacts], flags: [] },
    ...(agentMs === undefined ? {} : { agentMs }),
    ...(fault === undefined ? {} : { fault }),
  }
}

const BROKE_OFF = 'the call of the model broke off: the daemon that passed it on was killed'

const UNDER_WAY: ReadonlySet<EpisodePhase> = new Set([
  ...(['offered', 'agent', 'model', 'stopping'] as const),
])
