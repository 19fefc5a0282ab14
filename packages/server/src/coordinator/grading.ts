import { type AttemptAddress, type GradeResult, isCurrent } from '@sandlot/core'
import { argvOf, type GradeSpec } from '@sandlot/protocol'
import type { NodeExecEnd } from '../node/port.ts'
import { execId } from './ids.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import {
  type EffectOf,
  endedHow,
  isStopping,
  leftMs,
  messageOf,
  postedLoss,
  type SandboxWork,
} from './sandboxes.ts'

/** Grades by command, and the world in which a worker grades. */
export interface Grading {
  start(effect: EffectOf<'start_grade'>): void
  cancel(effect: EffectOf<'cancel_grade'>): void
  /** Opens the world that a grade's lease names, before the worker gets it. False: the grade was ended instead. */
  openFor(effect: EffectOf<'offer_lease'>): Promise<boolean>
  readonly world: 'main' | 'grade'
}

type CommandGrade = Extract<GradeSpec, { kind: 'command' }>
type Fenced = AttemptAddress & { readonly token: number }

export function openGrading(work: SandboxWork): Grading {
  const { record, node, clock, signal, actor, warn } = work
  const { grade } = record.specification
  const place = grade?.in ?? 'same'
  const world = place === 'same' ? 'main' : 'grade'
  const shows = place === 'clean' ? 'image' : 'main'
  /** Sandboxes in which a command grades at this moment, by token. */
  const grading = new Map<number, string>()

  async function start(effect: EffectOf<'start_grade'>) {
    const { episode, attempt, token, sandbox } = effect
    const of = { episode, attempt, token }
    grading.set(token, sandbox)
    try {
      const end = await runCommand(grade as CommandGrade, effect)
      // Over its time: core ends the phase by its own clock, as `grade_timeout`.
      if (end === undefined || end.timedOut) return
      actor.post({ type: 'graded', ...of, result: verdictOf(end) })
    } catch (error) {
      failed(of, error)
    } finally {
      grading.delete(token)
    }
  }

  async function runCommand(
    spec: CommandGrade,
    effect: EffectOf<'start_grade'>,
  ): Promise<NodeExecEnd | undefined> {
    const { sandbox, token } = effect
    await prepare(sandbox, spec.files ?? [])
    if (!isCurrent(actor.run, effect)) return undefined
    return await node.exec(
      {
        sandbox,
        exec: execId(record.id, token, 0),
        world,
        argv: argvOf(spec.command),
        ...(spec.env === undefined ? {} : { env: spec.env }),
        ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
        ...(spec.user === undefined ? {} : { user: spec.user }),
        timeoutMs: leftMs(clock, effect.dueMs),
        headBytes: 0,
        tailBytes: COORDINATOR_LIMITS.commandTailBytes,
      },
      { signal },
    )
  }

  async function prepare(sandbox: string, files: CommandGrade['files'] & {}) {
    const wait = { signal, timeoutMs: COORDINATOR_LIMITS.gradeOpenMs }
    if (world === 'grade') await node.openGradeWorld({ sandbox, shows }, wait)
    if (files.length > 0) await node.putFiles({ sandbox, world, files }, wait)
  }

  /** A grade that can't be given is `grade_error`, whoever's failure it was; that of the sandbox itself is its fate. */
  function failed(of: Fenced, error: unknown) {
    if (isStopping(error, signal) || postedLoss(work, of, error)) return
    actor.post({ type: 'graded', ...of, result: { kind: 'failed', cause: messageOf(error) } })
  }

  return {
    world,
    start: (effect) => void start(effect),
    cancel({ token }) {
      const sandbox = grading.get(token)
      if (sandbox === undefined) return
      node
        .killExec({ sandbox, exec: execId(record.id, token, 0) }, { signal })
        .catch((error: unknown) => {
          // It has ended by itself, or with its sandbox, or it was never started.
          if (!isGone(error)) warn(`could not stop the grade in ${sandbox}`, error)
        })
    },
    async openFor(effect) {
      try {
        await prepare(effect.sandbox, [])
        return true
      } catch (error) {
        const { episode, attempt, token } = effect
        const of = { episode, attempt, token }
        if (isStopping(error, signal) || postedLoss(work, of, error)) return false
        const cause = ['the world for the grade could not be opened', messageOf(error)]
        actor.post({ type: 'reported', ...of, report: { kind: 'threw', cause } })
        return false
      }
    },
  }
}

/** Exit 0 → 1. The shell's codes for "not executable" and "not found", and a signal, are no verdict. */
function verdictOf(end: NodeExecEnd): GradeResult {
  if (end.exitCode === 0) return { kind: 'verdict', reward: 1 }
  if (end.exitCode === null || end.exitCode === 126 || end.exitCode === 127) {
    return { kind: 'failed', cause: `the grade command ${endedHow(end)}` }
  }
  return { kind: 'verdict', reward: 0 }
}

function isGone(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return code === 'exec_unknown' || code === 'sandbox_gone' || code === 'sandbox_unknown'
}
