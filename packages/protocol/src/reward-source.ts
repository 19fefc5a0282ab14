import { z } from 'zod'
import { kernelText } from './kernel-text.ts'
import { LIMITS } from './limits.ts'

/**
 * Where the verdict of a command is.
 *
 * - `exit`: exit 0 gives 1, another exit 0.
 * - `stdout`: its output is JSON, or has exactly one line that is an object with `reward` or `rewards`.
 * - `file`: the first of these paths that is there when it has ended, JSON or a number as text. What lies there before it starts is
 *   removed.
 *
 * JSON is a number, `{ reward, rewards }`, or an object of numbers: its names are `rewards`, and its `reward` the reward.
 * No verdict, two of them, or one that is no finite number is a failure of whoever had to give it, and never a 0.
 */
export const rewardSource = z.discriminatedUnion('from', [
  z.object({ from: z.literal('exit') }).strict(),
  z.object({ from: z.literal('stdout') }).strict(),
  z
    .object({
      from: z.literal('file'),
      paths: z.array(kernelText.startsWith('/').max(LIMITS.pathBytes)).min(1).max(8),
    })
    .strict(),
])
export type RewardSource = z.infer<typeof rewardSource>
