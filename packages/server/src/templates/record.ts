import { createHash } from 'node:crypto'
import { formatId, resources, SNAPSHOT_KINDS, type TemplateCreate, tags } from '@sandlot/protocol'
import { z } from 'zod'

/** A prepared environment: `kv template/<project>/<id>`. */
export const templateRecord = z.object({
  id: z.string(),
  project: z.string(),
  kind: z.enum(SNAPSHOT_KINDS),
  image: z.string(),
  /** Of the kind `memory`. */
  snapshot: z.string().optional(),
  resources: resources.optional(),
  name: z.string().optional(),
  tags,
  createdAtMs: z.number(),
})
export type TemplateRecord = z.infer<typeof templateRecord>

/**
 * The id of what a request prepares over an image: the same content is the same template, whoever asks. Names and tags are no content.
 */
export function templateId(project: string, image: string, input: TemplateCreate): string {
  const { snapshot = 'filesystem', resources, start, ready, onRestore } = input
  const known = [project, image, snapshot, resources ?? null, start ?? null, ready ?? null]
  const content = onRestore ? [...known, onRestore] : known
  return formatId('template', createHash('sha256').update(JSON.stringify(content)).digest())
}
