import type { ResourcesInput, RunCreateInput } from '@sandlot/protocol'
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
  readonly command?: string | readonly string[]
  /** For its program alone; its grader doesn't see it. */
  readonly env?: Record<string, string>
  readonly files?: Record<string, BroughtContent>
  readonly cwd?: string
  readonly user?: string
  readonly grade?: Partial<Pick<CommandGrade, 'run' | 'files' | 'clear' | 'env' | 'cwd' | 'user'>>
  /** Why it is not to be run as it is: its rows have the outcome `task_invalid` with this as their cause, and it gets no sandbox. */
  readonly quarantine?: string
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
