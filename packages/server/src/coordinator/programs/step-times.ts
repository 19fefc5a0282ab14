import type { ProgramStep } from '@sandlot/protocol'
import { COORDINATOR_LIMITS } from '../limits.ts'
import type { Timeouts } from '../specification.ts'

/** Of the phases of an episode without steps. Milliseconds. */
export type StepTimes = Pick<Timeouts, 'setup' | 'agent' | 'grade'>

/** How long each part of a step may take: its own, or that of the phase which it would be by itself. */
export function stepTimes(
  { timeout, grade }: Pick<ProgramStep, 'timeout' | 'grade'>,
  { setup, agent, grade: grading }: StepTimes,
) {
  return { prepareMs: setup, commandMs: timeout ?? agent, gradeMs: grade?.timeout ?? grading }
}

/** What all of them may take at most, with all that is brought: only a daemon that hangs meets it. */
export function stepsMs(steps: readonly ProgramStep[], times: StepTimes): number {
  const { bringMs, gradeOpenMs } = COORDINATOR_LIMITS
  return steps.reduce((sum, step) => {
    const { prepareMs, commandMs, gradeMs } = stepTimes(step, times)
    const prepares = step.prepare === undefined ? 0 : prepareMs
    const grades = step.grade === undefined ? 0 : gradeMs + 4 * gradeOpenMs
    return sum + 2 * bringMs + prepares + commandMs + grades
  }, 0)
}
