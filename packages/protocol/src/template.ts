import { z } from 'zod'
import { command } from './exec.ts'
import { functionLine } from './function-call.ts'
import { idOf } from './ids.ts'
import { imageSource } from './image.ts'
import { onRestore } from './on-restore.ts'
import { deadlineOf } from './quantity.ts'
import { resources } from './resources.ts'
import { tags } from './sandbox.ts'
import { SNAPSHOT_KINDS } from './snapshot.ts'
import { startableName } from './start-point.ts'

/** What must come true before a memory snapshot is taken: a command that exits with 0, or a port of loopback that takes connections. */
export const readyCheck = z.union([
  z.object({ command }).strict(),
  z.object({ port: z.number().int().min(1).max(65_535) }).strict(),
])
export type ReadyCheck = z.infer<typeof readyCheck>

/** `POST /v1/templates`: prepares an environment, or finds the one of the same content. Environment, user and working directory are the image's. */
export const templateCreate = z
  .object({
    source: imageSource,
    /** `memory`: starts come with what `start` began, running. Default: `filesystem`. */
    snapshot: z.enum(SNAPSHOT_KINDS).optional(),
    /** Of sandboxes started from it; a call may override them, but not those of a memory snapshot. */
    resources: resources.optional(),
    /** Begun in the sandbox of a memory snapshot before it is taken, and left running. */
    start: command.optional(),
    ready: readyCheck.optional(),
    /** How long `ready` may take. Default: 60 seconds. */
    readyTimeout: deadlineOf(1, '60 seconds').optional(),
    /** Runs in all that start from its memory, before anybody has them. */
    onRestore: onRestore.optional(),
    name: startableName.optional(),
    tags: tags.optional(),
  })
  .strict()
  .refine(
    ({ snapshot, start, ready, onRestore }) =>
      snapshot === 'memory' || (!start && !ready && !onRestore),
    'start, ready and onRestore belong to a memory snapshot: give snapshot: "memory"',
  )
export type TemplateCreate = z.output<typeof templateCreate>

export const templateView = z.object({
  /** Derived from its content: the same content is the same template. */
  id: idOf('template'),
  project: z.string(),
  name: z.string().optional(),
  tags,
  kind: z.enum(SNAPSHOT_KINDS),
  image: idOf('image'),
  /** Of the kind `memory`. */
  snapshot: idOf('snapshot').optional(),
  resources: resources.optional(),
  createdAtMs: z.number(),
  lastUsedAtMs: z.number().optional(),
})
export type TemplateView = z.infer<typeof templateView>

/** The lines of the answer, the last one `done` or `error`. */
export const templateLine = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('log'), line: z.string() }),
  z.object({ kind: z.literal('detail'), line: z.string() }),
  functionLine,
  z.object({ kind: z.literal('done'), template: templateView }),
  z.object({ kind: z.literal('error'), error: z.unknown() }),
])
