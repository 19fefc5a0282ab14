/**
 * An attempt whose program has steps: each is brought what it needs, its command runs, and it is graded before the next begins; the last
 * is left to the run's grader. What a step came to is recorded before the next one changes anything, so that whoever goes on after a
 * restart begins nothing a second time.
 */
import type { Episode } from '@sandlot/core'
import {
  argvOf,
  formatDuration,
  type PhaseNetwork,
  type ProgramStep,
  type WorkerReport,
} from '@sandlot/protocol'
import { endedHow } from '../../node/ended-how.ts'
import type { NodeExecEnd } from '../../node/port.ts'
import { gone, pathsOf } from '../grade-command.ts'
import { execId } from '../ids.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'
import type { RunProgram } from '../own-terms.ts'
import { hasPolicies, isStopping, type SandboxWork } from '../sandboxes.ts'
import { hasRun } from '../verdict.ts'
import { gradeStep } from './grade-step.ts'
import { keepOutput } from './output.ts'
import { modelEnv, runCommand } from './run-command.ts'
import { type During, failed, type ProgramEnd, type ProgramLease, STOPPED } from './run-program.ts'
import { stepTimes } from './step-times.ts'
import { fallsShort, readSteps, type StepsDone } from './step-verdicts.ts'
import { taskFile, toldOf } from './told.ts'

export interface Stepped {
  readonly episode: Episode
  readonly sandbox: string
  readonly network: PhaseNetwork
  readonly program: RunProgram & { readonly steps: readonly ProgramStep[] }
}

/** What one step works with. */
export interface StepWork extends Stepped, During {
  readonly of: ProgramLease
  readonly step: ProgramStep
  readonly index: number
  /** What its commands are told by their environment. */
  readonly told: Readonly<Record<string, string>>
}

export async function runSteps(
  work: SandboxWork,
  of: ProgramLease,
  during: During,
  stepped: Stepped,
): Promise<ProgramEnd> {
  const { actor, record, clock } = work
  const { program } = stepped
  const told = { ...toldOf(actor.run, record.name, of), ...modelEnv(program) }
  const sinceMs = clock.now()
  let done: StepsDone = readSteps(stepped.episode.current?.note)
  for (;;) {
    const index = done.steps.length
    const step = program.steps[index] as ProgramStep
    const at: StepWork = { ...stepped, ...during, of, step, index, told }
    const failure = await prepare(work, at)
    if (failure !== undefined) return { ...failed([failure]), artifacts: done.artifacts ?? [] }
    const ran = await runAgent(work, at, done)
    if (ran === undefined) return STOPPED
    const { ended, late } = ran
    const artifacts = await keepOutput(work, ended, artifactsOf(at, 'agent'))
    done = noted(done, { late: late ? step.name : undefined, artifacts })
    const end = (more: { readonly ungraded?: string } = {}): ProgramEnd => ({
      report: reportOf(done, ended, more),
      artifacts: done.artifacts ?? [],
      ...(during.stop.aborted ? {} : { agentMs: Math.round(clock.now() - sinceMs) }),
    })
    if (during.stop.aborted) return end()
    if (!ended.killed && ended.exitCode !== null && !hasRun(ended)) {
      return { ...failed([`${whereOf(step)}the command ${endedHow(ended)}`]), artifacts }
    }
    if (step.grade === undefined) return end()
    const { verdict, artifacts: left } = await gradeStep(work, at, step.grade)
    done = noted(done, { artifacts: left })
    if (verdict.kind === 'none') return end({ ungraded: `${whereOf(step)}${verdict.cause}` })
    const { kind: _, ...given } = verdict
    done = { ...done, steps: [...done.steps, { name: step.name, ...given }] }
    if (fallsShort(program, done.steps)) return end()
    await keepDone(work, of, done)
  }
}

/** Brings what the step needs and runs what prepares it, unless an earlier daemon has. Why it can't begin, or undefined. */
async function prepare(work: SandboxWork, at: StepWork): Promise<string | undefined> {
  const { node, signal, actor, record } = work
  const { of, step, index, sandbox, told, program } = at
  const [first, exec] = [stepExec(work, at, 'prepare'), stepExec(work, at, 'agent')]
  const hasBegun = await node.hasExec({ sandbox, exec }, { signal })
  const isPrepared = hasBegun || (await node.hasExec({ sandbox, exec: first }, { signal }))
  if (!isPrepared) await bring(work, at)
  if (index === 0) {
    actor.post({ type: 'lease_taken', episode: of.episode, attempt: of.attempt, token: of.token })
  }
  if (hasBegun || step.prepare === undefined) return undefined
  const { prepareMs } = stepTimes(step, program.times ?? record.specification.timeoutMs)
  const { cwd, user } = step
  const ended = await node.exec(
    {
      ...{ sandbox, exec: first, argv: argvOf(step.prepare), timeoutMs: prepareMs },
      env: { ...program.env, ...step.env, ...told },
      ...(cwd === undefined ? {} : { cwd }),
      ...(user === undefined ? {} : { user }),
      headBytes: 0,
      tailBytes: COORDINATOR_LIMITS.commandTailBytes,
    },
    { signal },
  )
  if (ended.timedOut) {
    return `${whereOf(step)}what prepares it did not end within ${formatDuration(prepareMs)}`
  }
  return ended.exitCode === 0 ? undefined : `${whereOf(step)}what prepares it ${endedHow(ended)}`
}

/** Its files; of the step before neither its tests stay nor its verdict. */
async function bring(
  { node, tasks, signal }: SandboxWork,
  { episode, sandbox, network, program, step, index }: StepWork,
): Promise<void> {
  const wait = { signal, timeoutMs: COORDINATOR_LIMITS.bringMs }
  const before = program.steps[index - 1]?.grade
  const task = await taskFile(tasks, episode)
  const clear = [...(before?.from ? [] : (before?.clear ?? [])), ...(step.clear ?? [])]
  const files = [...(index === 0 ? (program.files ?? []) : []), ...(step.files ?? [])]
  await node.putFiles({ sandbox, files: [task], ...gone(pathsOf(before?.reward), clear) }, wait)
  if (files.length > 0) {
    await node.putFiles({ sandbox, files, of: { user: step.user ?? program.user } }, wait)
  }
  if (hasPolicies(network)) await node.enterPhase({ sandbox, phase: 'agent' }, { signal })
}

/**
 * Until its end, or that of its time. That it is over is recorded before the command is ended: whoever comes to it after a restart can't
 * tell from its end.
 */
async function runAgent(
  work: SandboxWork,
  at: StepWork,
  done: StepsDone,
): Promise<{ readonly ended: NodeExecEnd; readonly late: boolean } | undefined> {
  const { of, step, index, sandbox, program, told, stop, time } = at
  const late = new AbortController()
  const { commandMs } = stepTimes(step, program.times ?? work.record.specification.timeoutMs)
  const end = async () => {
    try {
      await keepDone(work, of, { ...done, overdue: index })
    } catch (error) {
      if (isStopping(error, work.signal)) return
      work.warn(`could not record that the step ${step.name} is late`, error)
    }
    late.abort()
  }
  const wasLate = done.overdue === index
  if (wasLate) late.abort()
  using _ = wasLate ? undefined : time.start(commandMs, () => void end())
  const command = { ...step, env: { ...program.env, ...step.env } }
  const exec = stepExec(work, at, 'agent')
  const signal = AbortSignal.any([stop, late.signal])
  const ended = await runCommand(work, { sandbox, exec, program: command, told }, signal)
  return ended && { ended, late: late.signal.aborted && ended.killed }
}

/** Durable when it resolves. */
async function keepDone({ actor }: SandboxWork, of: ProgramLease, done: StepsDone): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const { episode, attempt, token } = of
  const note = JSON.stringify(done)
  actor.post({ type: 'lease_noted', episode, attempt, token, note }, (answer) =>
    answer.ok ? resolve() : reject(answer.error),
  )
  await promise
}

function reportOf(
  { steps, late }: StepsDone,
  { exitCode, signal, durationMs }: NodeExecEnd,
  more: { readonly ungraded?: string },
): WorkerReport {
  const ended = { exitCode, signal, durationMs: Math.round(durationMs) }
  const dataJson = JSON.stringify({ ...ended, steps, ...(late ? { late } : {}), ...more })
  // Its own time is a budget of the policy's.
  return { kind: 'returned', dataJson, ...(late ? { limit: 'time' } : {}) }
}

function noted(
  { overdue: _, ...done }: StepsDone,
  {
    late,
    artifacts,
  }: {
    readonly late?: string | undefined
    readonly artifacts: NonNullable<StepsDone['artifacts']>
  },
): StepsDone {
  const all = [...(done.artifacts ?? []), ...artifacts]
  return {
    ...done,
    ...(late === undefined ? {} : { late: [...(done.late ?? []), late] }),
    ...(all.length > 0 ? { artifacts: all } : {}),
  }
}

const PARTS = ['prepare', 'agent', 'grade'] as const

/** Follows from the lease, so that each part runs once. */
export function stepExec(
  { record }: Pick<SandboxWork, 'record'>,
  { of, index }: Pick<StepWork, 'of' | 'index'>,
  part: (typeof PARTS)[number],
): string {
  return execId(record.id, of.token, index * PARTS.length + PARTS.indexOf(part))
}

export function artifactsOf({ step }: Pick<StepWork, 'step'>, part: 'agent' | 'grade') {
  return { stdout: `${step.name}.${part}.stdout`, stderr: `${step.name}.${part}.stderr` }
}

export function whereOf({ name }: Pick<ProgramStep, 'name'>): string {
  return `step ${name}: `
}
