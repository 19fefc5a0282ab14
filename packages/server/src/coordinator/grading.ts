import type { AttemptAddress, GradeResult } from '@sandlot/core'
import { type Late, type NoVerdict, openWorld, runGrade } from './grade-command.ts'
import { termsOf } from './own-terms.ts'
import { settledBefore, withSteps } from './programs/step-verdicts.ts'
import {
  type EffectOf,
  isOfWorkload,
  isStopping,
  messageOf,
  postedLoss,
  type SandboxWork,
} from './sandboxes.ts'
import type { Given } from './verdict.ts'

/** Grades by command, and the world in which a worker grades. */
export interface Grading {
  start(effect: EffectOf<'start_grade'>): void
  cancel(effect: EffectOf<'cancel_grade'>): void
  /** Opens the world that a grade's lease names, before the worker gets it. False: the grade was ended instead. */
  openFor(effect: EffectOf<'offer_lease'>): Promise<boolean>
  readonly world: 'main' | 'grade'
}

type Fenced = AttemptAddress & { readonly token: number }

export function openGrading(work: SandboxWork): Grading {
  const { record, node, signal, actor, tasks, warn } = work
  const place = record.specification.grade?.in ?? 'same'
  const world = place === 'same' ? 'main' : 'grade'
  /** Commands that grade at this moment, by token. */
  const grading = new Map<number, { readonly sandbox: string; readonly exec: string }>()

  const begun = ({ token }: Fenced, command: { sandbox: string; exec: string }) =>
    void grading.set(token, command)

  async function start(effect: EffectOf<'start_grade'>) {
    const { episode, attempt, token } = effect
    const of = { episode, attempt, token }
    try {
      const program = await steppedOf(effect)
      const settled = program && settledBefore(program, effect.dataJson)
      if (settled) {
        actor.post({ type: 'graded', ...of, result: settled })
        return
      }
      const graded = await runGrade(work, effect, world, begun)
      if (graded === undefined) return
      const { verdict, artifacts } = graded
      const result = verdict.kind === 'none' ? await blame(verdict, effect) : resultOf(verdict)
      if (result === undefined) return
      const whole = program ? withSteps(program, effect.dataJson, result) : { result }
      actor.post({ type: 'graded', ...of, ...whole, artifacts })
    } catch (error) {
      failed(of, error)
    } finally {
      grading.delete(token)
    }
  }

  /** The program whose steps but the last are graded already; undefined where it has none. */
  async function steppedOf({ own }: EffectOf<'start_grade'>) {
    if (own === null) return undefined
    const { program } = termsOf(record.specification, await tasks.loadOwn(own))
    return program?.steps && { steps: program.steps, rewards: program.rewards }
  }

  /**
   * The command gave no verdict. Where the same command gives one on the image alone, whatever it is, the grader is sound and the
   * episode's files broke it: that is a 0. Otherwise the grader is at fault, and the episode has no reward.
   */
  async function blame(
    { cause }: NoVerdict,
    effect: EffectOf<'start_grade'>,
  ): Promise<GradeResult | undefined> {
    if (place === 'clean') return { kind: 'failed', cause }
    const control = await runGrade(work, effect, 'control', begun)
    if (control === undefined) return undefined
    if (control.verdict.kind === 'none') return { kind: 'failed', cause }
    if (control.verdict.kind === 'late') {
      return { kind: 'timed_out', said: `${cause}; on the image alone its time was over before` }
    }
    return {
      kind: 'verdict',
      reward: 0,
      cause: `${cause}; on the image alone it works, so what the episode left broke it`,
    }
  }

  /** A grade that can't be given is `grade_error`, whoever's failure it was; that of the sandbox itself is its fate. */
  function failed(of: Fenced, error: unknown) {
    if (isStopping(error, signal) || postedLoss(work, of, error)) return
    const result = { kind: 'failed', cause: messageOf(error), ...faultOf(error) } as const
    actor.post({ type: 'graded', ...of, result })
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
        const terms = termsOf(record.specification, await tasks.loadOwn(effect.own))
        await openWorld(work, effect.sandbox, world, terms)
        return true
      } catch (error) {
        const { episode, attempt, token } = effect
        const of = { episode, attempt, token }
        if (isStopping(error, signal) || postedLoss(work, of, error)) return false
        const cause = ['the world for the grade could not be opened', messageOf(error)]
        const report = { kind: 'threw', cause } as const
        actor.post({ type: 'reported', ...of, report, ...faultOf(error) })
        return false
      }
    },
  }
}

function resultOf(verdict: Given | Late): GradeResult {
  if (verdict.kind === 'late') return { kind: 'timed_out', said: verdict.said }
  const { reward, rewards } = verdict
  return { kind: 'verdict', reward, rewards }
}

function faultOf(error: unknown): { readonly fault?: 'platform' } {
  return isOfWorkload(error) ? {} : { fault: 'platform' }
}

function isGone(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return code === 'exec_unknown' || code === 'sandbox_gone' || code === 'sandbox_unknown'
}
