/** What an episode leaves behind when its sandbox is given back. */
import { z } from 'zod'
import { kernelText } from './kernel-text.ts'
import { LIMITS } from './limits.ts'

/** Paths of files, with wildcards: those that are there after the episode are its artifacts, under their paths. */
export const artifactPatterns = z
  .array(
    kernelText
      .max(LIMITS.artifactNameLength)
      .startsWith(
        '/',
        'a pattern begins with /: it names files of the sandbox by their whole path',
      ),
  )
  .min(1)
  .max(LIMITS.artifactPatterns)

/** Of how many sandboxes the files are kept as snapshots; of all episodes, or only of those that ended otherwise than `graded`. */
export interface KeepRule {
  readonly of: 'failed' | 'all'
  readonly max: number
}

/** A number is of failed ones. */
export const keepSpec = z
  .union([z.enum(['on-failure', 'always']), z.number().int().min(1).max(LIMITS.kept)])
  .transform((given): KeepRule => {
    if (typeof given === 'number') return { of: 'failed', max: given }
    return { of: given === 'always' ? 'all' : 'failed', max: LIMITS.keptDefault }
  })
