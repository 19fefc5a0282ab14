import type { ResourcesInput, RunCreateInput, StepRewards } from '@sandlot/protocol'
import type { ImageLike } from '../image/resolve.ts'
import type { BroughtContent, CommandGrade, RewardOption, RunOptions } from './options.ts'

/** What a task has in the place of what the run has; `env` and `files` are added to the run's. */
export interface TaskOptions {
  /** Its row says with the image's digest what it started from. Of equal descriptions each is built once. */
  readonly from?: ImageLike
  readonly timeout?: RunCreateInput['timeout']
  readonly resources?: ResourcesInput
  /** Of every phase: none of the run's is left. */
  readonly network?: RunCreateInput['network']
  /** None of the run's is left; `network` beside it allows their hosts. */
  readonly secrets?: RunCreateInput['secrets']
  readonly command?: string | readonly string[]
  /** For its program alone; its grader doesn't see it. */
  readonly env?: Record<string, string>
  readonly files?: Record<string, BroughtContent>
  readonly cwd?: string
  readonly user?: string
  readonly grade?: TaskGrade
  /**
   * In the place of the command: several, one after another in one sandbox, each graded before the next begins. The run's grader grades the
   * last. Of a run with a grade command.
   */
  readonly steps?: readonly ProgramStep[]
  /** How the rewards of its steps become one: those of the last that ran (default), or the mean of each by name. */
  readonly rewards?: StepRewards
  /** Why it is not to be run as it is: its rows have the outcome `task_invalid` with this as their cause, and it gets no sandbox. */
  readonly quarantine?: string
}

type OwnCommand = Pick<CommandGrade, 'files' | 'clear' | 'env' | 'cwd' | 'user'>

/** What of its grader a task has in the place of what the run has. */
export interface TaskGrade extends OwnCommand, GradedElsewhere {
  readonly run?: CommandGrade['run']
}

/** A grader in a world that shows an image of its own: nothing of the episode is there but what it is passed. */
export interface GradedElsewhere {
  /** Default: where the run grades. */
  readonly from?: ImageLike
  /** Files and directories of the episode, at most 64, that it gets at their own paths. What isn't there is not missed. */
  readonly pass?: readonly string[]
}

/** One of several commands that are an episode. */
export interface ProgramStep extends OwnCommand {
  readonly name: string
  readonly run: string | readonly string[]
  /** Runs before it, when its files are there. One that fails is `episode_error`. */
  readonly prepare?: string | readonly string[]
  /**
   * Default: `timeout.agent` of its task, or of the run. Used up, the step is graded as it stands, and its episode is `limit`. Calls of the model don't
   * count.
   */
  readonly timeout?: number | string
  /** Of each step but the last. What the step's command left running lives on meanwhile. */
  readonly grade?: StepGrade
  /** A reward below it, by name, or without it, ends the episode with this step. */
  readonly least?: Readonly<Record<string, number>>
}

export interface StepGrade extends OwnCommand, GradedElsewhere {
  readonly run: CommandGrade['run']
  readonly reward?: RewardOption
  /** Default: `timeout.grade` of its task, or of the run. */
  readonly timeout?: number | string
}

/** A command that is an episode. */
export interface Program<Task> {
  /**
   * The episode: it finds its task in the file that SANDLOT_TASK_FILE names. Without a grader it gives the verdict itself. Text is for
   * `sh -c`.
   */
  readonly command: string | readonly string[]
  /** Where the verdict of the command is, in a run without a grader. Default `exit`. */
  readonly reward?: RewardOption
  /** Brought in before the command starts: path in the sandbox → content. */
  readonly files?: Record<string, BroughtContent>
  /**
   * An endpoint over HTTP that it finds at SANDLOT_MODEL_URL, on its own loopback, whatever the network lets it reach. What it asks there
   * is a model call: its time is off the agent's clock, and a failure that comes last is `model_error`.
   */
  readonly model?: { readonly url: string }
  /** What a task has of its own. */
  readonly each?: (task: Task, index: number) => TaskOptions | Promise<TaskOptions>
  /** What the program gets of a task. Default: all of it. */
  readonly content?: (task: Task, index: number) => unknown
}

export interface ProgramOptions<Task> extends RunOptions<Task>, Program<Task> {
  readonly grade?: CommandGrade
}

/** Of a run of programs that stays open. Keys are made as for `OpenOptions`. */
export type OpenProgramOptions<Task> = Omit<ProgramOptions<Task>, 'name' | keyof Program<Task>>
