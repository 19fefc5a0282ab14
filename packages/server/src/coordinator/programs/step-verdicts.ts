/** What the graders of a program's steps gave, and how that becomes the verdict of the episode. */
import type { GradeResult } from '@sandlot/core'
import type { Artifact } from '@sandlot/protocol'
import type { RunProgram } from '../own-terms.ts'
import type { Given } from '../verdict.ts'

export interface StepVerdict extends Omit<Given, 'kind'> {
  readonly name: string
}

/** How far the steps have come. Of a lease it is its note, of a report a part of its data. */
export interface StepsDone {
  readonly steps: readonly StepVerdict[]
  /** Steps whose agents used up their time. */
  readonly late?: readonly string[]
  /** Of the steps, the one whose time is over, from before its command is ended until that is seen to. */
  readonly overdue?: number
  readonly artifacts?: readonly Artifact[]
}

/** As they stand in a report: why one of them could not be graded. */
interface StepsReported extends StepsDone {
  readonly ungraded?: string
}

type Stepped = Pick<RunProgram, 'rewards'> & { readonly steps: NonNullable<RunProgram['steps']> }

export function readSteps(text: string | null | undefined): StepsReported {
  if (text === null || text === undefined) return { steps: [] }
  const { steps = [], ...more } = JSON.parse(text) as Partial<StepsReported>
  return { steps, ...more }
}

/** Whether its last verdict is below what the steps that follow ask for; one that isn't there is. */
export function fallsShort({ steps }: Stepped, done: readonly StepVerdict[]): boolean {
  const verdict = done.at(-1)
  if (verdict === undefined) return false
  const rewards = namesOf(verdict)
  const least = Object.entries(steps[done.length - 1]?.least ?? {})
  return least.some(([name, bound]) => (rewards[name] ?? Number.NEGATIVE_INFINITY) < bound)
}

/**
 * What the grade of an episode comes to without its last step: it ended before that one, or was not graded. Undefined: its last step is
 * to be graded.
 */
export function settledBefore(program: Stepped, dataJson: string | null): GradeResult | undefined {
  const { steps: done, ungraded } = readSteps(dataJson)
  if (ungraded !== undefined) return { kind: 'failed', cause: ungraded }
  if (fallsShort(program, done)) return { kind: 'verdict', ...combined(program, done) }
  const next = program.steps[done.length]
  if (done.length >= program.steps.length - 1) return undefined
  // Each of its parts has a deadline of its own, and none was met.
  const cause = `step ${next?.name}: it was not over in time`
  return { kind: 'failed', cause, fault: 'platform' }
}

/** The last verdict with those before it, and the data of its row. */
export function withSteps(
  program: Stepped,
  dataJson: string | null,
  result: GradeResult,
): { readonly result: GradeResult; readonly dataJson?: string } {
  if (result.kind !== 'verdict') return { result }
  const data = readSteps(dataJson)
  const { reward, rewards } = result as Omit<Given, 'kind'>
  const name = program.steps.at(-1)?.name ?? ''
  const last = {
    name,
    ...(reward === undefined ? {} : { reward }),
    ...(rewards ? { rewards } : {}),
  }
  const steps = [...data.steps, last]
  return {
    result: { ...result, ...combined(program, steps) },
    dataJson: JSON.stringify({ ...data, steps }),
  }
}

function combined({ rewards: by = 'final' }: Stepped, done: readonly StepVerdict[]) {
  const all = done.map(namesOf)
  const { reward, ...others } = by === 'final' ? (all.at(-1) ?? {}) : meanOf(all)
  const named = Object.keys(others).length > 0
  return {
    reward,
    rewards: named ? { ...(reward === undefined ? {} : { reward }), ...others } : undefined,
  }
}

function meanOf(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = new Set(all.flatMap((rewards) => Object.keys(rewards)))
  const mean = (name: string) =>
    all.reduce((sum, rewards) => sum + (rewards[name] ?? 0), 0) / all.length
  return Object.fromEntries([...names].map((name) => [name, mean(name)]))
}

function namesOf({ reward, rewards }: StepVerdict): Record<string, number> {
  return { ...(reward === undefined ? {} : { reward }), ...rewards }
}
