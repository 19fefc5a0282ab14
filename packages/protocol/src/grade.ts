import { z } from 'zod'
import { command } from './exec.ts'
import { environment, kernelText, userName } from './kernel-text.ts'
import { LIMITS } from './limits.ts'
import { rewardSource } from './reward-source.ts'

/** A file that is brought into the sandbox only where it is needed; its content is a blob. */
export const broughtFile = z
  .object({
    path: kernelText.startsWith('/').max(LIMITS.pathBytes),
    blob: z.string(),
    mode: z.number().int().min(0).max(0o7777),
  })
  .strict()
export type BroughtFile = z.infer<typeof broughtFile>

/** What runs a command of an episode: its program, or its grader. */
export const commandFields = {
  /** On top of the sandbox's own. */
  env: environment.optional(),
  /** Default: the sandbox's. */
  cwd: kernelText.max(LIMITS.pathBytes).optional(),
  user: userName.optional(),
  files: z.array(broughtFile).max(LIMITS.gradeFiles).optional(),
  /** Directories that are there and empty when it starts, but for its files: whatever lay there before is gone. */
  clear: z.array(kernelText.startsWith('/').max(LIMITS.pathBytes)).max(16).optional(),
}

/**
 * Where a grader runs. `same`: beside the episode's live processes. `world`: in a second world over the episode's files, its
 * processes have ended. `clean`: in a second world with the image alone; what the episode left is read through the main world's
 * files, so nothing of it is loaded by accident.
 */
export const GRADE_PLACES = ['same', 'world', 'clean'] as const
const gradePlace = z.enum(GRADE_PLACES)

/** Who grades: a command that the daemon runs, or a worker of the run. */
export const gradeSpec = z.discriminatedUnion('kind', [
  z
    .object({
      kind: z.literal('command'),
      command,
      in: gradePlace,
      ...commandFields,
      /** Where its verdict is. Default: its exit code. */
      reward: rewardSource.optional(),
    })
    .strict(),
  z.object({ kind: z.literal('worker'), in: gradePlace }).strict(),
])
export type GradeSpec = z.infer<typeof gradeSpec>
