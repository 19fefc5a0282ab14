/** What is kept of queues. */
import {
  completeResourcesSchema,
  networkPolicy,
  QUEUE_KINDS,
  queueResult,
  secretUses,
  taskError,
} from '@sandlot/protocol'
import { z } from 'zod'

/** A function with every default filled in. */
export const functionRecord = z.object({
  bundle: z.string(),
  export: z.string(),
  label: z.string(),
  /** Id of an image; null: the daemon's own. */
  image: z.string().nullable(),
  resources: completeResourcesSchema,
  env: z.record(z.string(), z.string()),
  network: networkPolicy,
  secrets: secretUses.exactOptional(),
  timeoutMs: z.number(),
  concurrency: z.number(),
})
export type FunctionRecord = z.infer<typeof functionRecord>

/** A queue: `kv queue/<project>/<name>`. */
export const queueRecord = z.object({
  /** Of all that belongs to it: one that is made again under its name has another. */
  uid: z.string(),
  project: z.string(),
  name: z.string(),
  kind: z.enum(QUEUE_KINDS),
  createdAtMs: z.number(),
  function: functionRecord.nullable(),
  autoscale: z.object({
    tasksPerContainer: z.number(),
    maxContainers: z.number(),
    minContainers: z.number(),
    idleMs: z.number(),
  }),
  retry: z.object({ error: z.number(), infra: z.number(), backoffMs: z.number() }),
  /** How long results stay; absent: as the daemon is set up. */
  retainMs: z.number().exactOptional(),
})
export type QueueRecord = z.infer<typeof queueRecord>

/** A task, as the engine's queue holds it. */
export const taskBody = z.object({
  call: z.string(),
  key: z.string().nullable(),
  json: z.string().nullable(),
  blob: z.string().nullable(),
  /** Name that keeps the blob. */
  pin: z.string().nullable(),
  /** Of a replay: the task that it is. */
  task: z.string().nullable(),
  replay: z.number(),
})
export type TaskBody = z.infer<typeof taskBody>

/** What is known of a task's failed tries: `kv queue-tries/<uid>/<message>`. The first try has none. */
export const taskTries = z.object({
  /** Deliveries whose end is in the other two, or that began nothing. */
  seen: z.number(),
  errors: z.number(),
  lost: z.number(),
})
export type TaskTries = z.infer<typeof taskTries>

/** One record of a stream of results. */
export const resultRecord = queueResult.omit({ cursor: true })
export type ResultRecord = z.infer<typeof resultRecord>

/** `kv queue-dead/<uid>/<task>` */
export const deadRecord = z.object({
  body: taskBody,
  error: taskError,
  attempts: z.number(),
  diedAtMs: z.number(),
})
export type DeadRecord = z.infer<typeof deadRecord>
