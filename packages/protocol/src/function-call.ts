import { z } from 'zod'
import { idOf } from './ids.ts'
import { LIMITS } from './limits.ts'
import { wholeText } from './whole-text.ts'

/** A line of a build's answer: a function of the client is to run in this sandbox, which waits for it. */
export const functionLine = z.object({
  kind: z.literal('function'),
  /** Of the step. */
  key: z.string(),
  call: z.number().optional(),
  sandbox: idOf('sandbox'),
})
export type FunctionLine = z.infer<typeof functionLine>

/** `POST /v1/sandboxes/:id/function` */
export const functionFinish = z
  .object({
    /** Why it failed. Without it, it has done what it should. */
    error: wholeText.max(LIMITS.causeLength).optional(),
  })
  .strict()
