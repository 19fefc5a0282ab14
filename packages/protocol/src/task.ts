import { z } from 'zod'
import { command } from './exec.ts'
import { commandFields } from './grade.ts'
import { LIMITS } from './limits.ts'
import { phaseNetwork } from './network.ts'
import { elsewhereFields, programSteps, STEP_REWARDS } from './program-step.ts'
import { resources } from './resources.ts'
import { secretUses } from './secret.ts'
import { startPoint } from './start-point.ts'
import { timeouts } from './timeouts.ts'
import { wholeText } from './whole-text.ts'

/** What a task has of its own, in the place of what the run has; `env` and `files` are added to the run's. */
const ownCommand = z.object({ command: command.optional(), ...commandFields }).strict()
export type OwnCommand = z.infer<typeof ownCommand>

const ownProgram = ownCommand
  .extend({
    /** In the place of the command, of a run that grades by command. Its time for the agent is theirs together. */
    steps: programSteps.optional(),
    /** Default `final`. */
    rewards: z.enum(STEP_REWARDS).optional(),
  })
  .strict()
export type OwnProgram = z.output<typeof ownProgram>

/** With a `from`, it runs in a world that shows that image, wherever the run grades. */
const ownGrade = ownCommand.extend(elsewhereFields).strict()
export type OwnGrade = z.output<typeof ownGrade>

/** One task. Same key and content is one task; the same key with other content is refused. */
export const taskPut = z
  .object({
    key: wholeText.min(1).max(LIMITS.keyLength),
    /** The task as JSON text, or a blob's digest when it is larger than `inlineBytes`. */
    json: z.string().optional(),
    blob: z.string().optional(),
    /** Its group: needed where the run groups by `name`, refused where it groups by `prompt`, else a label of its row. */
    group: wholeText.max(LIMITS.keyLength).optional(),
    /** Why it is not to be run as it is: its rows have the outcome `task_invalid` with this as their cause, and it gets no sandbox. */
    quarantine: wholeText.min(1).max(LIMITS.causeLength).optional(),
    /** For longest-expected first. */
    expectedMs: z.number().nonnegative().optional(),
    /** What its sandboxes start from. Default: what the run's do, as for all of the following. */
    from: startPoint.optional(),
    timeout: timeouts.optional(),
    /** Those that it names; the others are the run's, or with a `from` of its own what that one has. */
    resources: resources.optional(),
    /** As a whole: a phase that it doesn't name reaches nothing. */
    network: phaseNetwork.optional(),
    /** As a whole, for hosts that its own `network` allows. */
    secrets: secretUses.optional(),
    /** Of a run of programs. */
    program: ownProgram.optional(),
    /** Of a run that grades by command. */
    grade: ownGrade.optional(),
  })
  .strict()
  .refine(
    (task) => (task.json === undefined) !== (task.blob === undefined),
    'a task has either json or blob',
  )
  .refine(({ secrets, network }) => secrets === undefined || network !== undefined, {
    path: ['secrets'],
    message: 'a task with secrets of its own says in network too which hosts it may reach',
  })
export type TaskPutInput = z.input<typeof taskPut>
export type TaskPut = z.output<typeof taskPut>

export const tasksPut = z
  .object({ tasks: z.array(taskPut).min(1).max(LIMITS.tasksPerRequest) })
  .strict()
