import { type AttemptAddress, type GradeResult, isCurrent } from '@sandlot/core'
import type { Clock } from '@sandlot/engine'
import { argvOf, type ErrorCode, type GradeSpec, SandlotError } from '@sandlot/protocol'
import { endedHow } from '../node/ended-how.ts'
import type { GraderWorld, NodeExecEnd } from '../node/port.ts'
import { execId } from './ids.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import {
  type EffectOf,
  hasPolicies,
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
  /** Commands that grade at this moment, by token. */
  const grading = new Map<number, { readonly sandbox: string; readonly exec: string }>()

  async function start(effect: EffectOf<'start_grade'>) {
    const { episode, attempt, token } = effect
    const of = { episode, attempt, token }
    try {
      const end = await runIn(world, effect)
      const result = end && (verdictOf(end) ?? (await blame(end, effect)))
      if (result) actor.post({ type: 'graded', ...of, result })
    } catch (error) {
      failed(of, error)
    } finally {
      grading.delete(token)
    }
  }

  /**
   * The command gave no verdict. Where the same command gives one on the image alone, whatever it is, the grader is sound and the
   * episode's files broke it: that is a 0. Otherwise the grader is at fault, and the episode has no reward.
   */
  async function blame(
    end: CommandEnd,
    effect: EffectOf<'start_grade'>,
  ): Promise<GradeResult | undefined> {
    const cause = `the grade command ${toldOf(end)}`
    if (place === 'clean') return { kind: 'failed', cause }
    const control = await runIn('control', effect)
    if (control === undefined) return undefined
    if (verdictOf(control) === undefined) return { kind: 'failed', cause }
    return {
      kind: 'verdict',
      reward: 0,
      cause: `${cause}; on the image alone it works, so what the episode left broke it`,
    }
  }

  /** Undefined where its time was over, which core ends as `grade_timeout` by its own clock, or nobody wants it any more. */
  async function runIn(
    where: 'main' | GraderWorld,
    effect: EffectOf<'start_grade'>,
  ): Promise<CommandEnd | undefined> {
    const { sandbox, token } = effect
    const spec = grade as CommandGrade
    const exec = execId(record.id, token, where === 'control' ? 1 : 0)
    try {
      await prepare(sandbox, where, spec.files ?? [])
      if (!isCurrent(actor.run, effect)) return undefined
      grading.set(token, { sandbox, exec })
      const end = await node.exec(
        { ...commandOf(spec, effect, clock), exec, world: where },
        { signal },
      )
      return end.timedOut ? undefined : end
    } catch (error) {
      // Anything but the files in its way is no word about the grader.
      if (!(error instanceof SandlotError) || !BY_FILES.has(error.code)) throw error
      return { refusal: error.message }
    }
  }

  async function prepare(
    sandbox: string,
    where: 'main' | GraderWorld,
    files: CommandGrade['files'] & {},
  ) {
    const wait = { signal, timeoutMs: COORDINATOR_LIMITS.gradeOpenMs }
    if (where !== 'main') {
      const shown = where === 'control' ? 'image' : shows
      await node.openGradeWorld({ sandbox, world: where, shows: shown }, wait)
    }
    if (hasPolicies(record.specification.network)) {
      await node.enterPhase({ sandbox, phase: 'grade', world: where }, wait)
    }
    if (files.length > 0) await node.putFiles({ sandbox, world: where, files }, wait)
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
      const command = grading.get(token)
      if (command === undefined) return
      node.killExec(command, { signal }).catch((error: unknown) => {
        // It has ended by itself, or with its sandbox, or it was never started.
        if (!isGone(error)) warn(`could not stop the grade in ${command.sandbox}`, error)
      })
    },
    async openFor(effect) {
      try {
        await prepare(effect.sandbox, world, [])
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

function commandOf(spec: CommandGrade, { sandbox, dueMs }: EffectOf<'start_grade'>, clock: Clock) {
  return {
    sandbox,
    argv: argvOf(spec.command),
    ...(spec.env === undefined ? {} : { env: spec.env }),
    ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
    ...(spec.user === undefined ? {} : { user: spec.user }),
    timeoutMs: leftMs(clock, dueMs),
    headBytes: 0,
    tailBytes: COORDINATOR_LIMITS.commandTailBytes,
  }
}

/** How a command ended, or why it could not be started with what is there. */
type CommandEnd = NodeExecEnd | { readonly refusal: string }

/** Exit 0 → 1, another → 0. The shell's codes for "not executable" and "not found", and a signal, are no verdict. */
function verdictOf(end: CommandEnd): GradeResult | undefined {
  if ('refusal' in end || end.exitCode === null) return undefined
  if (end.exitCode === 126 || end.exitCode === 127) return undefined
  return { kind: 'verdict', reward: end.exitCode === 0 ? 1 : 0 }
}

/** Refusals that files can bring about; never a lost sandbox, a timeout or a fault of the daemon. */
const BY_FILES: ReadonlySet<ErrorCode> = new Set([
  'exec_failed',
  'file_not_found',
  'file_is_directory',
  'file_not_directory',
  'file_not_regular',
  'file_exists',
  'file_failed',
  'directory_not_empty',
  'permission_denied',
  'no_space',
])

function toldOf(end: CommandEnd): string {
  return 'refusal' in end ? `could not be run: ${end.refusal}` : endedHow(end)
}

function isGone(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return code === 'exec_unknown' || code === 'sandbox_gone' || code === 'sandbox_unknown'
}
