import type { Files } from '../sandbox/files.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { ArtifactContent } from './artifacts.ts'
import type { ModelCall } from './model-clock.ts'

/** What an episode function gets. */
export interface EpisodeContext<Task> {
  /** Its own sandbox, gone when the episode is over. */
  readonly sandbox: Sandbox
  readonly task: Task
  readonly key: string
  /** Name of its group, and which of it this is, from 0. Without groups: its key, and 0. */
  readonly group: string
  readonly member: number
  /** Position among the episodes of the run, in the order of submission. */
  readonly index: number
  /** Number of this attempt, from 1. */
  readonly attempt: number
  /** The same for every attempt of one episode of one run. */
  readonly seed: number
  /** As `run.setPolicyVersion` had said when this attempt was given out; 0 where it never did. */
  readonly policyVersion: number
  /** Aborted when the attempt is over for the platform: deadline, cancellation, lost sandbox. */
  readonly signal: AbortSignal
  /**
   * Marks a call of the model: its time is off the agent's clock, and its failure or expiry makes the episode `model_error`, never
   * a zero, whatever the function returns then. A later call that succeeds clears it. The call gets a signal of its own.
   */
  readonly model: ModelCall
  /** Adds a line to the attempt's log, which is its artifact `log`. Bounded: the first lines are kept. */
  readonly log: (message: string) => void
  /**
   * Keeps text, bytes or a file of the sandbox (`{ path }`) under a name, for `run.artifact(row, name)` and `sandlot runs artifacts`.
   * They come with the attempt's report: one that a deadline or a lost worker ended has none.
   */
  readonly artifact: (name: string, content: ArtifactContent) => Promise<void>
}

/**
 * What an episode function returns. Without a grader `reward` or `rewards` is the verdict; with one neither may be there.
 * `limit` says that the policy used up a budget of its own. `data` reaches the grader and the result.
 */
export interface EpisodeResult {
  readonly reward?: number
  readonly rewards?: Record<string, number>
  readonly data?: unknown
  readonly limit?: string
}

/** One episode. It may return nothing when a grader gives the verdict. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is what users write
export type Episode<Task> = (context: EpisodeContext<Task>) => Promise<EpisodeResult | void>

/** What a grader function gets. */
export interface GradeContext<Task> {
  /** The grader's world: over the episode's files, or the image alone with `in: 'clean'`. With `'same'` it is the episode's. */
  readonly sandbox: Sandbox
  /** The files that the episode left, whatever world the grader is in. Nothing can run there any more. */
  readonly episode: { readonly files: Files }
  readonly task: Task
  readonly key: string
  /** What the episode returned as `data`. */
  readonly data: unknown
  readonly signal: AbortSignal
}

/** A verdict: one finite number, named ones, or both. */
export type Verdict =
  | number
  | { readonly reward: number; readonly rewards?: Record<string, number> }
  | { readonly reward?: undefined; readonly rewards: Record<string, number> }

export type Grader<Task> = (context: GradeContext<Task>) => Promise<Verdict>
