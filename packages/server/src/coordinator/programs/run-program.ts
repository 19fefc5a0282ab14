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
import type { NodeExecEnd } from '../../node/port.ts'
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
    return { report: { kind: 'aborted' }, artifacts: [] }
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
  if (!(await node.hasExec({ sandbox, exec }, { signal }))) {
    await bring(work, episode, { sandbox, program, source })
  }
  if (stop.aborted) return { report: { kind: 'aborted' }, artifacts: [] }
  const { token, attempt } = of
  actor.post({ type: 'lease_taken', episode: of.episode, attempt, token })
  let running = true
  const onStop = () => void end(work, { sandbox, exec }, () => running)
  stop.addEventListener('abort', onStop, { once: true })
  const told = toldOf(actor.run, record.name, of)
  try {
    const ended = await node.exec(
      {
        ...{ sandbox, exec, argv: argvOf(program.command) },
        env: { ...program.env, ...told, ...modelEnv(program) },
        ...(program.cwd === undefined ? {} : { cwd: program.cwd }),
        ...(program.user === undefined ? {} : { user: program.user }),
        headBytes: COORDINATOR_LIMITS.outputHeadBytes,
        tailBytes: COORDINATOR_LIMITS.outputTailBytes,
      },
      { signal },
    )
    const artifacts = await keepOutput(work, ended, {
      stdout: OUTPUT_ARTIFACTS.agentStdout,
      stderr: OUTPUT_ARTIFACTS.agentStderr,
    })
    const report = await reportOf(work, { sandbox, ended, source })
    return {
      ...{ report, artifacts },
      ...(!ended.killed ? { agentMs: Math.round(ended.durationMs) } : {}),
    }
  } finally {
    running = false
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

/** Ends the command with all it started. One that is just beginning is not there yet. */
async function end(
  { node, clock, signal, warn }: SandboxWork,
  command: { readonly sandbox: string; readonly exec: string },
  isRunning: () => boolean,
): Promise<void> {
  while (isRunning()) {
    try {
      await node.killExec(command, { signal })
      return
    } catch (error) {
      if (!isRunning() || isStopping(error, signal)) return
      // It went with its sandbox.
      if (error instanceof SandlotError && error.code === 'sandbox_gone') return
      if (!(error instanceof SandlotError && error.code === 'exec_unknown')) {
        warn(`could not end a program in ${command.sandbox}`, error)
        return
      }
    }
    await new Promise<void>((resolve) => void clock.after(COORDINATOR_LIMITS.stopEveryMs, resolve))
  }
}

function failed(cause: string[]): ProgramEnd {
  return { report: { kind: 'threw', cause }, artifacts: [] }
}
