/** One attempt of a program: what it needs is brought, its command runs, and what that came to is the report. */
import { type AttemptAddress, attemptInProgress, type Episode } from '@sandlot/core'
import {
  type Artifact,
  argvOf,
  OUTPUT_ARTIFACTS,
  PROGRAM_ENV,
  type ProgramSpec,
  type RewardSource,
  SandlotError,
  type WorkerReport,
} from '@sandlot/protocol'
import { NETWORK_LIMITS } from '@sandlot/runtime'
import { endedHow } from '../../node/ended-how.ts'
import type { NodeExecEnd, NodeExecRequest } from '../../node/port.ts'
import { gone, pathsOf } from '../grade-command.ts'
import { execId } from '../ids.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'
import { termsOf } from '../own-terms.ts'
import { isOfWorkload, isStopping, messageOf, postedLoss, type SandboxWork } from '../sandboxes.ts'
import { BY_EXIT, hasRun, readVerdict } from '../verdict.ts'
import { keepOutput } from './output.ts'
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

/**
 * Runs the command, or waits for the one that an earlier daemon began. Never rejects. Undefined where there is nothing to report: the
 * sandbox is gone, or the daemon stops.
 */
export async function runProgram(
  work: SandboxWork,
  of: ProgramLease,
  stop: AbortSignal,
): Promise<ProgramEnd | undefined> {
  try {
    return await run(work, of, stop)
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
  stop: AbortSignal,
): Promise<ProgramEnd | undefined> {
  const { record, actor, tasks, node, signal } = work
  const episode = attemptInProgress(actor.run, of)
  const sandbox = episode?.current?.sandbox
  if (!episode || !sandbox) return undefined
  const terms = termsOf(record.specification, await tasks.loadOwn(episode.own?.more ?? null))
  const program = terms.program as ProgramSpec
  const source = terms.grade === null ? (program.reward ?? BY_EXIT) : undefined
  const exec = execId(record.id, of.token, 0)
  // What it has done to its files since it began stays.
  const hasBegun = await node.hasExec({ sandbox, exec }, { signal })
  if (!hasBegun) await bring(work, episode, { sandbox, program, source })
  if (!hasBegun && stop.aborted) return STOPPED
  const { token, attempt } = of
  const address = { episode: of.episode, attempt, token }
  actor.post({ type: 'lease_taken', ...address })
  const told = toldOf(actor.run, record.name, of)
  const command = {
    ...{ sandbox, exec, argv: argvOf(program.command) },
    env: { ...program.env, ...told, ...modelEnv(program) },
    ...(program.cwd === undefined ? {} : { cwd: program.cwd }),
    ...(program.user === undefined ? {} : { user: program.user }),
    headBytes: COORDINATOR_LIMITS.outputHeadBytes,
    tailBytes: COORDINATOR_LIMITS.outputTailBytes,
  }
  const ended = await runUntilStop(work, command, stop)
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

/** How the command ended. Undefined where its end was ordered, and there is none. */
async function runUntilStop(
  work: SandboxWork,
  command: NodeExecRequest,
  stop: AbortSignal,
): Promise<NodeExecEnd | undefined> {
  const { node, signal, clock } = work
  const late = Promise.withResolvers<undefined>()
  let isRunning = true
  let cancelWait = () => {}
  const onStop = async () => {
    if (!(await end(work, command, () => isRunning))) return
    cancelWait = clock.after(COORDINATOR_LIMITS.endMs, () => late.resolve(undefined))
  }
  if (stop.aborted) void onStop()
  else stop.addEventListener('abort', onStop, { once: true })
  const running = node.exec(command, { signal })
  try {
    return await Promise.race([running, late.promise])
  } finally {
    isRunning = false
    running.catch(() => {})
    cancelWait()
    stop.removeEventListener('abort', onStop)
  }
}

/** Where its model is inside. */
function modelEnv({ model }: ProgramSpec): Record<string, string> {
  if (model === undefined) return {}
  const path = new URL(model.url).pathname.replace(/\/+$/, '')
  return { [PROGRAM_ENV.modelUrl]: `http://127.0.0.1:${NETWORK_LIMITS.port}${path}` }
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

/** Ends the command with all it started; whether the sandbox said so. One that is just beginning is not there yet. */
async function end(
  { node, clock, signal, warn }: SandboxWork,
  { sandbox, exec }: { readonly sandbox: string; readonly exec: string },
  isRunning: () => boolean,
): Promise<boolean> {
  while (isRunning()) {
    try {
      await node.killExec({ sandbox, exec }, { signal })
      return isRunning()
    } catch (error) {
      if (!isRunning() || isStopping(error, signal)) return false
      // It went with its sandbox.
      if (error instanceof SandlotError && error.code === 'sandbox_gone') return false
      if (!(error instanceof SandlotError && error.code === 'exec_unknown')) {
        warn(`could not end a program in ${sandbox}`, error)
        return false
      }
    }
    await new Promise<void>((resolve) => void clock.after(COORDINATOR_LIMITS.stopEveryMs, resolve))
  }
  return false
}

/** It was told to stop, and there is nothing that it left. */
const STOPPED: ProgramEnd = { report: { kind: 'aborted' }, artifacts: [] }

function failed(cause: string[]): ProgramEnd {
  return { report: { kind: 'threw', cause }, artifacts: [] }
}
