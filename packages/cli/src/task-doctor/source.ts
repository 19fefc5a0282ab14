/** Where tasks to be examined come from, whatever their format. */
import type { ImageLike, ProgramOptions, TaskOptions } from 'sandlot'
import type { TrialRole } from './trial.ts'

export interface DoctorTask {
  readonly key: string
  /** Of all that it is made of. */
  readonly digest: string
  /** That an agent has; undefined: what the run gives. */
  readonly timeoutMs: number | undefined
  /** Who can be tried: without a gold solution `null` alone. */
  readonly roles: readonly TrialRole[]
  readonly from: ImageLike
  /** What is run in its sandboxes, and what those may use. */
  readonly options: (role: TrialRole) => TaskOptions | Promise<TaskOptions>
  /** What the programs are told of it. */
  readonly content: unknown
}

export interface DoctorSource {
  readonly tasks: readonly DoctorTask[]
  /** What all of its tasks have. */
  readonly run: Pick<ProgramOptions<never>, 'command' | 'grade'>
  /** What of a task has no meaning here, and which task's it is. */
  readonly notes: readonly { readonly key: string; readonly text: string }[]
}
