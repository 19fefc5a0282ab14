import { z } from 'zod'
import { errorEnvelope } from './errors.ts'
import { idOf } from './ids.ts'
import { LIMITS } from './limits.ts'
import { onRestore, restoreCommand } from './on-restore.ts'
import { completeResourcesSchema } from './resources.ts'
import { sandboxView, tags } from './sandbox.ts'
import { startableName } from './start-point.ts'

/** `filesystem`: the files alone, one more layer over where the sandbox began. `memory`: running processes besides. */
export const SNAPSHOT_KINDS = ['filesystem', 'memory'] as const
export type SnapshotKind = (typeof SNAPSHOT_KINDS)[number]

/** `POST /v1/sandboxes/:id/snapshots`. */
export const snapshotCreate = z
  .object({
    kind: z.enum(SNAPSHOT_KINDS),
    /** Unique in its project; the newest snapshot of a name takes it over. */
    name: startableName.optional(),
    tags: tags.optional(),
    /** Paths whose content is left out, such as `/tmp`. Default: none. Of the kind `filesystem` alone. */
    exclude: z.array(z.string().startsWith('/').max(LIMITS.pathBytes)).max(64).optional(),
    /** Runs in all that start from it, before anybody has them. Of the kind `memory` alone. */
    onRestore: onRestore.optional(),
    /** Lists leave it out unless all are asked for, or its name: it belongs to something else, such as a template. */
    hidden: z.boolean().optional(),
  })
  .strict()
  .refine(
    ({ kind, onRestore }) => kind === 'memory' || onRestore === undefined,
    "onRestore belongs to saved memory: give kind: 'memory'",
  )
export type SnapshotCreateInput = z.input<typeof snapshotCreate>
export type SnapshotCreate = z.output<typeof snapshotCreate>

export const snapshotView = z.object({
  id: idOf('snapshot'),
  project: z.string(),
  kind: z.enum(SNAPSHOT_KINDS),
  name: z.string().optional(),
  tags,
  /** The image that a start from it uses: the files. */
  image: idOf('image'),
  /** What its sandbox was started from: an image or a snapshot. */
  parent: z.string(),
  /** The sandbox it was taken of. */
  sandbox: idOf('sandbox'),
  /** What it adds to its parent on disk: its layer, and the checkpoint of a memory snapshot. */
  sizeBytes: z.number(),
  createdAtMs: z.number(),
  lastUsedAtMs: z.number().optional(),
  hidden: z.boolean().optional(),
  /** What of the sandbox's files it doesn't have, such as extended attributes: a line each. */
  warnings: z.array(z.string()).optional(),
  /** What a machine must have to restore it. Of memory snapshots alone. */
  needs: z
    .object({
      runtime: z.string(),
      cpuFeatures: z.string(),
      resources: completeResourcesSchema,
    })
    .optional(),
  /** Runs in all that start from it, before anybody has them. Of memory snapshots alone. */
  onRestore: restoreCommand.optional(),
})
export type SnapshotView = z.infer<typeof snapshotView>

/** `POST /v1/sandboxes/:id/fork`. */
export const forkCreate = z
  .object({
    count: z.number().int().min(1).max(LIMITS.forks),
    kind: z.enum(SNAPSHOT_KINDS).optional(),
    tags: tags.optional(),
    /** Runs in each copy before anybody has it. Of the kind `memory` alone. */
    onRestore: onRestore.optional(),
  })
  .strict()
  .refine(
    ({ kind, onRestore }) => kind !== 'filesystem' || onRestore === undefined,
    "onRestore belongs to saved memory: leave out kind: 'filesystem'",
  )
export type ForkCreate = z.output<typeof forkCreate>

/** A result for each copy: one that failed costs no other. */
export const forkAnswer = z.object({
  items: z.array(z.union([z.object({ sandbox: sandboxView }), errorEnvelope])),
})
export type ForkAnswer = z.output<typeof forkAnswer>
