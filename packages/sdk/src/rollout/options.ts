import type { Outcome, PolicyAction, ResourcesInput, RunCreateInput, Tags } from '@sandlot/protocol'
import { RemoteFunction } from '../function/remote-function.ts'
import type { ImageLike } from '../image/resolve.ts'
import type { GradeContext, Grader, Verdict } from './episode.ts'
import type { TaskOptions } from './program-options.ts'

/** A file that is brought in: bytes or text, or a local path. `mode` says its permissions, 0644 where it is not given. */
export type BroughtContent = string | Uint8Array | { readonly path: string; readonly mode?: number }

/**
 * Where the verdict of a command is.
 *
 * - `exit`: exit 0 → reward 1, another exit → 0.
 * - `stdout`: what it prints is JSON, or has one line that is an object with `reward` or `rewards`.
 * - `{ file }`: the file, or the first of several that is there, holds JSON or a number.
 *
 * JSON is a number, `{ reward, rewards }`, or an object of numbers. No verdict, or two, is an error and never a 0.
 */
export type RewardOption = 'exit' | 'stdout' | { readonly file: string | readonly string[] }

export type GradePlace = 'same' | 'world' | 'clean'

export interface CommandGrade {
  /** Its verdict can be forged by what the episode left, where the command loads that: see SECURITY.md. */
  readonly run: string | readonly string[]
  /** Where the verdict is. Default `exit`. */
  readonly reward?: RewardOption
  /**
   * `world` (default): the episode's processes have ended, its files are there. `same`: the grader needs its live servers.
   * `clean`: the image as it was, without the episode's files.
   */
  readonly in?: GradePlace
  /** Brought in only for grading: path in the sandbox → content. */
  readonly files?: Record<string, BroughtContent>
  /** Directories that are empty when it starts, but for `files`: what the episode left there is gone. */
  readonly clear?: readonly string[]
  readonly env?: Record<string, string>
  readonly cwd?: string
  readonly user?: string
}

export interface FunctionGrade<Task> {
  readonly run: Grader<Task>
  /** As for a command; with `clean` the grader reads what it needs by `episode.files`. */
  readonly in?: GradePlace
}

/** A grader that runs in the containers of an episode that is a function: `client.fn` of its module. */
export interface ContainerGrade<Task> {
  readonly run: RemoteFunction<GradeContext<Task>, Verdict>
  readonly in?: GradePlace
}

/** Episodes that are compared with one another. */
export interface GroupOptions<Task> {
  /**
   * Name of the group that a task is a member of: the run has `size` + `extra` tasks for each. Default: each task is a prompt of its
   * own, and is run `size` + `extra` times, under the keys `KEY#0`, `KEY#1`, …
   */
  readonly by?: (task: Task, index: number) => string | number
  /** Valid results with which a group is complete; what still runs then is cancelled. */
  readonly size: number
  /** With how many it is one at all: when it was cut, or when the rest has failed. Default: `size`. */
  readonly need?: number
  /** Episodes started beyond `size`. Those that finish first are kept, so that the slow ones are missing. Default 0. */
  readonly extra?: number
  /**
   * From so long on after the start of a group's last member, `need` suffices: a duration, or a quantile of what members take (`'p90'`).
   * Default: all are waited for.
   */
  readonly cut?: { readonly after: number | string }
  /** Versions by which an attempt may lag behind `run.setPolicyVersion`; what lags further is no sample. Default: any number. */
  readonly maxLag?: number
}

/** What every run has, whoever runs its episodes. */
export interface RunOptions<Task> {
  /** The run's name: the same name again attaches to it. Default: a fresh one. */
  readonly name?: string
  /** What each episode's sandbox starts from: an image, a snapshot, a template, or a description. */
  readonly from: ImageLike
  /** Episodes in flight. Default 16. */
  readonly concurrency?: number
  /** A task's key, of 1 to 512 characters, another one for each. Default: `task.id` where it is text or a number, else its position. */
  readonly key?: (task: Task, index: number) => string
  /** Expected duration of a task, for longest-expected first. Milliseconds. */
  readonly expected?: (task: Task, index: number) => number
  readonly timeout?: RunCreateInput['timeout']
  readonly retry?: RunCreateInput['retry']
  /** Of a memory snapshot they are fixed. */
  readonly resources?: ResourcesInput
  /** `cold`: start from the files of a memory snapshot where it can't be restored. Default: those episodes fail. */
  readonly ifIncompatible?: RunCreateInput['ifIncompatible']
  /** What each phase may reach: `{ setup: 'packages', agent: { allow: ['api.example.org'] } }`. Default: nothing. */
  readonly network?: RunCreateInput['network']
  /** What is put into requests of its sandboxes on their way out: `{ API_KEY: { from: 'openai', hosts: ['api.example.org'], tls: 'terminate' } }`. */
  readonly secrets?: RunCreateInput['secrets']
  readonly env?: Record<string, string>
  readonly workdir?: string
  readonly user?: string
  /** Commands that prepare each sandbox before its episode. */
  readonly setup?: readonly (string | readonly string[])[]
  /** Default: each episode is by itself. */
  readonly group?: GroupOptions<Task>
  /**
   * Begins a second attempt beside one whose sandbox takes longer to come up or to be set up: `{ after: '30s' }`, or of a quantile of
   * what that takes (`'p95'`). The first that is ready goes on, the other is ended; neither counts as a retry. `phases: ['agent']` does
   * the same with the episode itself: the first verdict counts, so that fast ones are favoured. Default: none.
   */
  readonly hedge?: RunCreateInput['hedge']
  readonly policy?: Partial<Record<Outcome, PolicyAction>>
  readonly seed?: number
  /**
   * Starts no more episodes while so many results wait to be read: for a trainer that must not fall behind. A row counts as read when
   * the page after it is asked for. With groups it counts these. Default: no bound, unread results wait on disk.
   */
  readonly ahead?: number
  /** Set it when the episode's code changed: part of what makes a run another one. */
  readonly version?: string
  readonly tags?: Tags
  /**
   * Files of each sandbox that are kept as artifacts under their paths, however its episode ended while it lived: whole paths, with
   * wildcards (`'/work/out/*.json'`, `**` for any depth). Bounded; `leftOut` of a row says what was too much.
   */
  readonly artifacts?: readonly string[]
  /**
   * Keeps the files of sandboxes as snapshots, to look into them later: of episodes that ended otherwise than `graded`
   * (`'on-failure'`, or so many of them), or of any (`'always'`). The first 8, or the number. They go with the run, or after a week.
   */
  readonly keep?: 'on-failure' | 'always' | number
  /** So long after its end the run is deleted with all that belongs to it: `'30d'`. Default: as the daemon is set up (`SANDLOT_RETAIN`). */
  readonly retain?: string | number
  /** What to do when a finished run of this name exists. Default: refuse (`run_exists`). */
  readonly ifExists?: 'attach' | 'replace'
  /** Gets each line of the log where what it starts from is built first. */
  readonly onLog?: (line: string) => void
  /** Ends this process's part in the run, and rejects what waits for it; the run itself lives on. */
  readonly signal?: AbortSignal
}

/** What a task's sandboxes are made of, and how long they have. */
export type OwnStart = Pick<TaskOptions, 'from' | 'timeout' | 'resources' | 'network' | 'secrets'>

export interface MapOptions<Task> extends RunOptions<Task> {
  /** What a task has of its own in the place of what the run has. */
  readonly each?: (task: Task, index: number) => OwnStart | Promise<OwnStart>
  readonly grade?: CommandGrade | FunctionGrade<Task>
}

/** Of a run whose episodes containers of a function run. */
export interface FunctionRunOptions<Task> extends Omit<MapOptions<Task>, 'grade'> {
  readonly grade?: CommandGrade | ContainerGrade<Task>
}

/** Of such a run that stays open. Keys are made as for `OpenOptions`. */
export type OpenFunctionOptions<Task> = Omit<FunctionRunOptions<Task>, 'name' | 'each'>

/**
 * Of a run that stays open. `key`: default `task.id` where it is text or a number, else made of the task's content, so that the same
 * task put twice is one. Positions, which `key`, `expected` and `group.by` are also given, count what this process has put.
 */
export type OpenOptions<Task> = Omit<MapOptions<Task>, 'name' | 'each'>

/**
 * What a process says of a run that it attaches to. Each option that makes a run another one has to be the run's own where it is
 * named (`run_differs`); a run that is graded by a function needs it from whoever works on it.
 */
export interface AttachOptions<Task>
  extends Partial<
    Omit<
      MapOptions<Task>,
      | 'name'
      | 'each'
      | 'concurrency'
      | 'ahead'
      | 'tags'
      | 'artifacts'
      | 'keep'
      | 'retain'
      | 'ifExists'
    >
  > {
  /** Episodes that this process works on at once. Default: as many as the run has in flight. */
  readonly concurrency?: number
}

export const CONCURRENCY_DEFAULT = 16

export function isContainerGrade<Task>(
  grade: CommandGrade | ContainerGrade<Task> | undefined,
): grade is ContainerGrade<Task> {
  return grade?.run instanceof RemoteFunction
}

export function isFunctionGrade<Task>(
  grade: CommandGrade | FunctionGrade<Task>,
): grade is FunctionGrade<Task> {
  return typeof grade.run === 'function'
}
