/** Whether the side that makes results and the side that takes them keep up with one another. */
import { z } from 'zod'

/** What limits a run: the word a person reads first in its report. */
export const LIMITING_FACTORS = [
  'concurrency',
  'capacity',
  'create-rate',
  'consumer',
  'worker',
  'model',
  'tail',
  'none',
] as const
export type LimitingFactor = (typeof LIMITING_FACTORS)[number]

const share = z.number().min(0).max(1)

export const saturation = z.object({
  /** What `limiting` is seen by, for a person. */
  evidence: z.string(),
  /** How long each factor held the run, of the time in which the daemon ran. */
  limitedMs: z.partialRecord(z.enum(LIMITING_FACTORS), z.number()),
  /** Of all the slots, over all that time: the share that held an episode. */
  slotsBusy: share,
  /** Whoever reads results, of groups where somebody reads these. null: nobody has. */
  trainer: z
    .object({
      /** How long it waited for results, and how long it had some in its hands before it asked for more. */
      waitedMs: z.number(),
      busyMs: z.number(),
      /** Waited, of both together. */
      waitShare: share,
      /** Rows, or groups, that it was given. */
      taken: z.number(),
    })
    .nullable(),
  /** The time in which nothing was begun because results waited to be read (`ahead`). */
  producer: z.object({ waitedMs: z.number(), waitShare: share }),
  /** The slots with which neither side would wait for the other. null: there is too little to tell, or no such number; `why` says what. */
  balance: z.object({ concurrency: z.number().nullable(), why: z.string() }),
})
export type Saturation = z.infer<typeof saturation>
