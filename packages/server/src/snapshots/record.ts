import { SNAPSHOT_KINDS, tags } from '@sandlot/protocol'
import { z } from 'zod'

/** A saved state of a sandbox: `kv snapshot/<project>/<id>`, written when everything it names is there. */
export const snapshotRecord = z.object({
  id: z.string(),
  project: z.string(),
  kind: z.enum(SNAPSHOT_KINDS),
  name: z.string().optional(),
  tags,
  image: z.string(),
  parent: z.string(),
  sandbox: z.string(),
  sizeBytes: z.number(),
  createdAtMs: z.number(),
  lastUsedAtMs: z.number().optional(),
})
export type SnapshotRecord = z.infer<typeof snapshotRecord>
