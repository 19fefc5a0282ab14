import { z } from 'zod'
import { command } from './exec.ts'
import { commandFields } from './grade.ts'
import { LIMITS } from './limits.ts'
import { deadlineOf } from './quantity.ts'
import { rewardSource } from './reward-source.ts'
import { startPoint } from './start-point.ts'
import { wholeText } from './whole-text.ts'

const absolutePath = wholeText.startsWith('/').max(LIMITS.pathBytes)

/** Of a grader in a world of its own: nothing of the episode is there but what it is passed. */
export const elsewhereFields = {
  /** An image, which its world shows in the place of the episode's files. */
  from: startPoint.optional(),
  /** Files and directories of the episode that it gets, at their own paths; what isn't there is not missed. */
  pass: z.array(absolutePath).max(LIMITS.passedPaths).optional(),
}

const stepTime = deadlineOf(LIMITS.phaseMsMin, 'the default of its phase')

/** Of a step: while its agent's processes live on, or in a world of its own. */
const stepGrade = z
  .object({
    command,
    ...commandFields,
    ...elsewhereFields,
    /** Default: its exit code. */
    reward: rewardSource.optional(),
    timeout: stepTime.optional(),
  })
  .strict()
export type StepGrade = z.output<typeof stepGrade>

const programStep = z
  .object({
    name: wholeText.min(1).max(LIMITS.nameLength),
    command,
    ...commandFields,
    /** Used up, the step is graded as it stands, and its episode is `limit`. Calls of its model don't count. */
    timeout: stepTime.optional(),
    /** Runs before its command, after its files were brought. One that fails is `episode_error`. */
    prepare: command.optional(),
    /** Of each but the last, which the run's own grader grades. */
    grade: stepGrade.optional(),
    /** A reward below it, or without it, ends the episode with this step. By name; `reward` is the one without a name. */
    least: z.record(z.string().max(LIMITS.nameLength), z.number()).optional(),
  })
  .strict()
export type ProgramStep = z.output<typeof programStep>

/** In one sandbox, one after another, each graded before the next begins. */
export const programSteps = z
  .array(programStep)
  .min(1)
  .max(LIMITS.programSteps)
  .refine(
    (steps) =>
      steps.every(({ grade }, index) => (grade === undefined) === (index === steps.length - 1)),
    'each step but the last has a grade, and the last has none: the run’s grader grades it',
  )
  .refine(
    (steps) => steps.filter(({ grade }) => grade?.from !== undefined).length <= LIMITS.stepImages,
    `at most ${LIMITS.stepImages} steps are graded in an image of their own`,
  )

/** How the rewards of steps become one: those of the last that ran, or the mean of each name, 0 where a step didn't give it. */
export const STEP_REWARDS = ['final', 'mean'] as const
export type StepRewards = (typeof STEP_REWARDS)[number]
