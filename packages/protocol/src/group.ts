/** The episodes of a run that are compared with one another, and when what there is of them suffices. */
import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { OUTCOMES } from './outcomes.ts'
import { durationOrQuantile, type Quantile } from './quantity.ts'
import { RESULT_SCHEMA_VERSION, resultRow } from './result.ts'

/** `prompt`: each task is one, and is run `size + extra` times. `name`: the `size + extra` tasks that name it. */
export const GROUPED_BY = ['prompt', 'name'] as const

/** A run's groups with every default filled in. */
export interface GroupRule {
  readonly by: (typeof GROUPED_BY)[number]
  /** Valid results with which a group is complete. */
  readonly size: number
  /** With so many it is still one, once it is cut or nothing more can come. */
  readonly need: number
  /** Started beyond `size`, so that the group is complete without its slowest or failed ones. */
  readonly extra: number
  /** When the rest is not waited for any more: so long after its last member started. null: never. */
  readonly cut: { readonly after: number | Quantile } | null
  /** Versions of the policy by which an attempt may lie behind. null: any number. */
  readonly maxLag: number | null
}

export const groupSpec = z
  .object({
    by: z.enum(GROUPED_BY).optional(),
    size: z.number().int().min(1).max(LIMITS.groupMembers),
    need: z.number().int().min(1).optional(),
    extra: z.number().int().min(0).optional(),
    cut: z
      .object({ after: durationOrQuantile(LIMITS.phaseMsMin) })
      .strict()
      .nullable()
      .optional(),
    maxLag: z.number().int().min(0).nullable().optional(),
  })
  .strict()
  .transform(
    (given): GroupRule => ({
      by: given.by ?? 'prompt',
      size: given.size,
      need: given.need ?? given.size,
      extra: given.extra ?? 0,
      cut: given.cut ?? null,
      maxLag: given.maxLag ?? null,
    }),
  )
  .superRefine(({ size, need, extra, cut }, context) => {
    const refuse = (field: string, message: string, hint: string) =>
      context.addIssue({ code: 'custom', path: [field], message, params: { hint } })
    if (need > size) {
      refuse('need', `${need} is more than the size, ${size}`, 'A group is complete at `size`.')
    }
    if (size + extra > LIMITS.groupMembers) {
      const members = `${size} and ${extra} more are ${size + extra} episodes`
      refuse('extra', `${members}; a group has at most ${LIMITS.groupMembers}`, 'Start fewer.')
    }
    if (cut !== null && need >= size) {
      const hint = `Say with how many results a group is still one, as \`need: ${Math.max(1, size - 1)}\`.`
      refuse('cut', 'nothing can be cut from a group that needs all of its results', hint)
    }
  })

/**
 * What ended a group. Complete: `size`, all results were there; `cut`, enough were there when it was cut or came after; `rest`, enough
 * were there and no more could come. Failed: `unreachable`, too few could come any more; `dropped`, by the policy `drop-group`;
 * `cancelled`, with its run.
 */
export const GROUP_REASONS = ['size', 'cut', 'rest', 'unreachable', 'dropped', 'cancelled'] as const
export type GroupReason = (typeof GROUP_REASONS)[number]

/** One record for each group: what a trainer reads that compares episodes. */
export const resultGroup = z.object({
  schema: z.literal(RESULT_SCHEMA_VERSION),
  cursor: z.string(),
  run: z.string(),
  group: z.string(),
  state: z.enum(['complete', 'failed']),
  reason: z.enum(GROUP_REASONS),
  /** Why it failed, for a person; null where it is complete. */
  error: z.string().nullable(),
  /** Episodes that it had, and how those among them ended that had by then. */
  members: z.number(),
  outcomes: z.partialRecord(z.enum(OUTCOMES), z.number()),
  /** Version of the policy when it ended. */
  policyVersion: z.number(),
  /** By now, as it was read, some of its results lag further behind the policy than the run allows. */
  stale: z.boolean(),
  startedAt: z.string(),
  endedAt: z.string(),
  /** The results that count, in the order of their completion: at most `size`, all valid; none where it failed. */
  rows: z.array(resultRow),
})
export type ResultGroup = z.infer<typeof resultGroup>

/** `GET /v1/runs/:name/groups`. `done`: the run is over and this is its last page. */
export const groupsPage = z.object({
  groups: z.array(resultGroup),
  cursor: z.string(),
  done: z.boolean(),
})
export type GroupsPage = z.infer<typeof groupsPage>
