import { z } from 'zod'
import { artifact } from './artifact.ts'
import { gradeFault, type Lease, workerReport } from './connect.ts'
import { LIMITS } from './limits.ts'
import { durationOf } from './quantity.ts'
import { functionSpec } from './queue.ts'

/**
 * A function as the worker of a run: its containers take the run's leases, one for each attempt or grade, so many at once. Its export
 * gets a `FunctionAttempt` and gives what a worker reports. What an attempt may take, the run says.
 */
export const episodeFunction = functionSpec
  .omit({ timeout: true })
  .extend({
    /** Attempts that one container works on at once: they mostly wait for others. Default 16. */
    concurrency: functionSpec.shape.concurrency,
    /** Default: as many as the run's concurrency needs, at most 64. */
    containers: z.number().int().min(1).max(LIMITS.containers).optional(),
    /** A container that had nothing to do for so long ends. Default 1 minute. */
    idle: durationOf(0, '1 minute').optional(),
  })
  .strict()
export type EpisodeFunction = z.output<typeof episodeFunction>
export type EpisodeFunctionInput = z.input<typeof episodeFunction>

/** The input of such a function: a lease, and the right to its sandbox. */
export interface FunctionAttempt {
  readonly lease: Lease
  /** Where the daemon answers inside of the container, and the token that it takes there: for this sandbox, and until the lease ends. */
  readonly url: string
  readonly token: string
}

/** What it gives back. Blobs that it names are files beside its module, called as `blobFile` says. */
export const functionAttemptEnd = z.object({
  report: workerReport,
  fault: gradeFault,
  artifacts: z.array(artifact).max(LIMITS.artifacts).optional(),
  agentMs: z.number().nonnegative(),
  modelMs: z.number().nonnegative(),
  lagMs: z.number().nonnegative(),
})
export type FunctionAttemptEnd = z.infer<typeof functionAttemptEnd>

/** What it tells meanwhile. `alive`: every 10 seconds, for the whole container, with how late its event loop ran since the last one. */
export const attemptNews = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('model_started') }),
  z.object({ kind: z.literal('model_ended') }),
  z.object({ kind: z.literal('alive'), lagMs: z.number().nonnegative() }),
])
export type AttemptNews = z.infer<typeof attemptNews>

/** The file in a container that holds a blob. */
export function blobFile(digest: string): string {
  return `blob-${digest.replace(/[^0-9a-z]/g, '-')}`
}
