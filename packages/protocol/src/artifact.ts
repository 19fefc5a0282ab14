import { z } from 'zod'
import { LIMITS } from './limits.ts'

/** Something that an attempt left for a person to look at; its content is a blob. */
export const artifact = z.object({
  /** One line; names an attempt's artifact, so it may serve as a file's name where it is one. */
  name: z
    .string()
    .min(1)
    .max(LIMITS.artifactNameLength)
    .regex(/^[^\p{Cc}]+$/u, 'an artifact’s name has no control characters'),
  /** `sha256:…` */
  blob: z.string(),
  sizeBytes: z.number().int().nonnegative(),
})
export type Artifact = z.infer<typeof artifact>

/** Where the lines of `ctx.log` are. */
export const LOG_ARTIFACT = 'log'
