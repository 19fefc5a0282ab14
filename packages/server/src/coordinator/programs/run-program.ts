/** One attempt of a program: what it needs is brought, its command runs, and what that came to is the report. */
import { type AttemptAddress, attemptInProgress, type Episode } from '@sandlot/core'
import {
  type Artifact,
  OUTPUT_ARTIFACTS,
  type ProgramSpec,
  type RewardSource,
  type WorkerReport,
} from '@sandlot/protocol'
import { endedHow } from '../../node/ended-how.ts'
import type { NodeExecEnd } from '../../node/port.ts'
import { gone, pathsOf } from '../grade-command.ts'
import { execId } from '../ids.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'
import { type RunProgram, termsOf } from '../own-terms.ts'
import { isOfWorkload, isStopping, messageOf, postedLoss, type SandboxWork } from '../sandboxes.ts'
import { BY_EXIT, hasRun, readVerdict } from '../verdict.ts'
import { keepOutput } from './output.ts'
import { modelEnv, runCommand } from './run-command.ts'
import { runSteps } from './run-steps.ts'
import type { StepClock } from './step-clock.ts'
import { taskFile, toldOf } from './told.ts'

/** The right to one attempt. */
export interface ProgramLease extends AttemptAddress {
  readonly lease: string
  readonly token: number
}

export interface ProgramEnd {
  readonly report: WorkerReport
  readonly artifacts: readonly Artifact[]
  /** What a command took that ended by itself: its time may go by until that can be told. */
  readonly agentMs?: number
  /** There is nothing to report, by no doing of the program. */
  readonly fault?: 'platform'
}

/** What happens to an attempt while it runs. */
export interface During {
  /** Aborted when its command is to end. */
  readonly stop: AbortSignal
  /** Of one of its steps. */
  readonly time: StepClock
}

/**
 * Runs the command, or waits for the one that an earlier daemon began. Never rejects. Undefined where there is nothing to report: the
 * sandbox is gone, or the daemon stops.
 */
export async function runProgram(
  work: SandboxWork,
  of: ProgramLease,
  during: During,
): Promise<ProgramEnd | undefined> {
  try {
    return await run(work, of, during)
  } catch (error) {
    if (isStopping(error, work.signal) || postedLoss(work, of, error)) return undefined
    if (isOfWorkload(error)) return failed([messageOf(error)])
    work.warn(`an attempt of ${work.record.name} could not be run, and is given up`, error)
    return { report: { kind: 'aborted' }, artifacts: [], fault: 'platform' }
  }
}

async function run(
  work: SandboxWork,
  of: ProgramLease,
  { stop, time }: During,
): Promise<ProgramEnd | undefined> {
  const { record, actor, tasks, node, signal } = work
  const episode = attemptInProgress(actor.run, of)
  const sandbox = episode?.current?.sandbox
  if (!episode || !sandbox) return undefined
  const terms = termsOf(record.specification, await tasks.loadOwn(episode.own?.more ?? null))
  const program = terms.program as RunProgram
  const { steps } = program
  if (steps) {
    const stepped = { episode, sandbox, network: terms.network, program: { ...program, steps } }
    return await runSteps(work, of, { stop, time }, stepped)
  }
  const source = terms.grade === null ? (program.reward ?? BY_EXIT) : undefined
  const exec = execId(record.id, of.token, 0)
  // What it has done to its files since it began stays.
  const hasBegun = await node.hasExec({ sandbox, exec }, { signal })
  if (!hasBegun) await bring(work, episode, { sandbox, program, source })
  if (!hasBegun && stop.aborted) return STOPPED
  const { token, attempt } = of
  const address = { episode: of.episode, attempt, token }
  actor.post({ type: 'lease_taken', ...address })
  const told = { ...toldOf(actor.run, record.name, of), ...modelEnv(program) }
  const ended = await runCommand(work, { sandbox, exec, program, told }, stop)
  if (ended === undefined) return STOPPED
  const agentMs = Math.round(ended.durationMs)
  const sayEnded = () => actor.post({ type: 'agent_ended', ...address, agentMs })
  if (!ended.killed) {
    if (stop.aborted) sayEnded()
    else stop.addEventListener('abort', sayEnded, { once: true })
  }
  try {
    const artifacts = await keepOutput(work, ended, {
      stdout: OUTPUT_ARTIFACTS.agentStdout,
      stderr: OUTPUT_ARTIFACTS.agentStderr,
    })
    const report = await reportOf(work, { sandbox, ended, source })
    return { report, artifacts, ...(ended.killed ? {} : { agentMs }) }
  } finally {
    stop.removeEventListener('abort', sayEnded)
  }
}

/** The task, the program's files, and no verdict that was there before. */
async function bring(
  { tasks, node, signal }: SandboxWork,
  episode: Episode,
  to: { sandbox: string; program: ProgramSpec; source: RewardSource | undefined },
): Promise<void> {
  const { sandbox, program, source } = to
  const wait = { signal, timeoutMs: COORDINATOR_LIMITS.bringMs }
  const { user, files = [], clear } = program
  const task = await taskFile(tasks, episode)
  await node.putFiles({ sandbox, files: [task], ...gone(pathsOf(source), clear) }, wait)
  if (files.length === 0) return
  await node.putFiles({ sandbox, files, of: { user } }, wait)
}

async function reportOf(
  { node, signal }: SandboxWork,
  after: {
    readonly sandbox: string
    readonly ended: NodeExecEnd
    /** Where the verdict is; absent where there is a grader. */
    readonly source: RewardSource | undefined
  },
): Promise<WorkerReport> {
  const { sandbox, ended, source } = after
  const { exitCode, signal: endedBy, durationMs } = ended
  const dataJson = JSON.stringify({ exitCode, signal: endedBy, durationMs: Math.round(durationMs) })
  if (ended.killed) return { kind: 'returned', dataJson }
  if (source === undefined) {
    // A signal is the policy's own doing, and so is every other code: what is there is graded.
    if (exitCode === null || hasRun(ended)) return { kind: 'returned', dataJson }
    return failed([`the command ${endedHow(ended)}`]).report
  }
  const { verdictBytes: bytesMax } = COORDINATOR_LIMITS
  const read = (path: string) => node.readFile({ sandbox, path, bytesMax }, { signal })
  const verdict = await readVerdict(source, ended, { who: 'the command', read }).catch((error) => {
    if (!isOfWorkload(error)) throw error
    return { kind: 'none', cause: messageOf(error) } as const
  })
  if (verdict.kind === 'none') return failed([verdict.cause]).report
  const { kind: _, ...given } = verdict
  return { kind: 'returned', ...given, dataJson }
}

/** It was told to stop, and there is nothing that it left. */
export const STOPPED: ProgramEnd = { report: { kind: 'aborted' }, artifacts: [] }

export function failed(cause: string[]): ProgramEnd {
  return { report: { kind: 'threw', cause }, artifacts: [] }
}
