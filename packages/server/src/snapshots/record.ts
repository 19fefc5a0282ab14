import { completeResourcesSchema, restoreCommand, SNAPSHOT_KINDS, tags } from '@sandlot/protocol'
import { z } from 'zod'

/** What a restore needs beside the files of the checkpoint. */
export const memoryRecord = z.object({
  /** Its name; each try to take the snapshot has another. */
  checkpoint: z.string(),
  /** The image below it: what was written since is part of the memory. */
  below: z.string(),
  resources: completeResourcesSchema,
  runtime: z.string(),
  cpuFeatures: z.string(),
  /** What commands see in the sandbox that it was taken of. */
  env: z.record(z.string(), z.string()),
  workdir: z.string(),
  user: z.string(),
  /** Runs in all that start from it. */
  onRestore: restoreCommand.exactOptional(),
})
export type MemoryRecord = z.infer<typeof memoryRecord>

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
  /** What of its sandbox's files it doesn't have. */
  warnings: z.array(z.string()).exactOptional(),
  hidden: z.boolean().optional(),
  /** It is removed when this time has come. */
  untilMs: z.number().exactOptional(),
  /** Of the kind `memory`. */
  memory: memoryRecord.optional(),
})
export type SnapshotRecord = z.infer<typeof snapshotRecord>
