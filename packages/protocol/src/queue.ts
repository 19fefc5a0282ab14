/** Task queues, the functions that work on them, and what comes back: results, dead letters, what functions print. */
import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from './errors.ts'
import { environment, kernelText } from './kernel-text.ts'
import { LIMITS } from './limits.ts'
import { networkPolicy } from './network.ts'
import { deadlineOf, durationOf } from './quantity.ts'
import { resources } from './resources.ts'
import { secretUses } from './secret.ts'
import { startPoint } from './start-point.ts'
import { wholeText } from './whole-text.ts'

export const queueName = z
  .string()
  .min(1)
  .max(LIMITS.queueNameLength)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    'a queue’s name has letters, digits, dots, dashes and underscores',
  )

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'not a digest (sha256:…)')

/** Whose results: those of one caller are apart from those of others. Chosen by the caller. */
export const callGroup = z.string().regex(/^[a-z0-9]{1,32}$/, 'not the name of a group of calls')

/** A function of a module: its code by its digest, and the containers that run it. */
export const functionSpec = z
  .object({
    /** Digest of one ES module that needs nothing but Node.js. */
    bundle: digest,
    export: kernelText.min(1).max(LIMITS.nameLength),
    /** What a person calls it. */
    label: kernelText.min(1).max(LIMITS.nameLength),
    /** Default: the smallest image that runs Node.js. */
    from: startPoint.optional(),
    resources: resources.optional(),
    env: environment.optional(),
    /** What it may reach. Default: nothing. */
    network: networkPolicy.optional(),
    /** What is put into requests of its containers on their way out, and never enters them. */
    secrets: secretUses.optional(),
    /** What one input may take. Default 5 minutes. */
    timeout: deadlineOf(1, '5 minutes').optional(),
    /** Inputs that one container works on at once. Default 1. */
    concurrency: z.number().int().min(1).max(LIMITS.functionConcurrency).optional(),
  })
  .strict()
export type FunctionSpec = z.output<typeof functionSpec>
export type FunctionSpecInput = z.input<typeof functionSpec>

/** How many containers there are, by what waits and runs. */
export const autoscale = z
  .object({
    /** Tasks that are there for each container that is wanted. Default: the function's concurrency. */
    tasksPerContainer: z.number().int().min(1).max(1_000_000).optional(),
    /** Default 8. */
    maxContainers: z.number().int().min(1).max(LIMITS.containers).optional(),
    /** Default 0. */
    minContainers: z.number().int().min(0).max(LIMITS.containers).optional(),
    /** A container that had nothing to do for so long ends. Default 1 minute. */
    idle: durationOf(0, '1 minute').optional(),
  })
  .strict()
  .refine(
    ({ minContainers = 0, maxContainers = minContainers }) => minContainers <= maxContainers,
    'minContainers is more than maxContainers',
  )
export type AutoscaleInput = z.input<typeof autoscale>

/** What is tried again, and how often. */
export const taskRetry = z
  .object({
    /** The handler threw, ran out of its time or ended its process. */
    error: z.number().int().min(0).max(LIMITS.taskRetries).optional(),
    /** The container was lost while it had the input, which may have had its effect. */
    infra: z.number().int().min(0).max(LIMITS.taskRetries).optional(),
    /** Before the second try; doubled each time, up to an hour. Default 1 second. */
    backoff: durationOf(0, '1 second').optional(),
  })
  .strict()
export type TaskRetryInput = z.input<typeof taskRetry>

/**
 * What its tasks are. `tasks`: work that is done once it is done. `calls`: somebody waits for each, so there are no dead letters and, unless
 * it is asked for, no retries; the queue goes when nobody used it for a day.
 */
export const QUEUE_KINDS = ['tasks', 'calls'] as const

/** `PUT /v1/queues/:name` */
export const queuePut = z
  .object({
    /** Of a queue that is there it stays as it is. */
    kind: z.enum(QUEUE_KINDS),
    /** Without one the queue keeps what it has, or only holds tasks. */
    function: functionSpec.optional(),
    autoscale: autoscale.optional(),
    retry: taskRetry.optional(),
    /** How long results stay. Default: as the daemon is set up, else a week; of calls a day. */
    retain: durationOf(LIMITS.retainMsMin, 'what the daemon is set up for').optional(),
  })
  .strict()
export type QueuePut = z.output<typeof queuePut>
export type QueuePutInput = z.input<typeof queuePut>

export const queueView = z.object({
  name: z.string(),
  kind: z.enum(QUEUE_KINDS),
  createdAtMs: z.number(),
  function: z
    .object({
      label: z.string(),
      bundle: z.string(),
      export: z.string(),
      /** null: the smallest that runs Node.js. */
      image: z.string().nullable(),
    })
    .nullable(),
  autoscale: z.object({
    tasksPerContainer: z.number(),
    maxContainers: z.number(),
    minContainers: z.number(),
    idle: z.number(),
  }),
  retry: z.object({ error: z.number(), infra: z.number(), backoff: z.number() }),
  tasks: z.object({
    ready: z.number(),
    /** Until their time, or their next try. */
    delayed: z.number(),
    running: z.number(),
    dead: z.number(),
  }),
  containers: z.object({ starting: z.number(), ready: z.number() }),
  /** How long results stay, milliseconds. */
  retain: z.number(),
  /** Why containers don't come up, for a person; null where they do. */
  trouble: z.string().nullable(),
})
export type QueueView = z.infer<typeof queueView>

/** `POST /v1/queues/:name/tasks`. `json` or `blob` is the input; without both there is none. */
export const queueTasksPut = z
  .object({
    /** Whose results they become. Default: those of the queue. */
    call: callGroup.optional(),
    tasks: z
      .array(
        z
          .object({
            /** Chosen by the client: sent again, it is the same task. */
            id: z.string().regex(/^[A-Za-z0-9_-]{8,64}$/, 'not an id'),
            /** While a task of this key stands in the queue, and 10 minutes after its put, another adds nothing. */
            key: wholeText.min(1).max(LIMITS.taskKeyLength).optional(),
            json: wholeText.max(LIMITS.inlineBytes).optional(),
            blob: digest.optional(),
            /** Higher is taken first. Default 0. */
            priority: z.number().int().min(-1_000_000).max(1_000_000).optional(),
            delay: durationOf(0, 'no delay')
              .refine(
                (ms) => ms <= LIMITS.taskDelayMs,
                'longer than 30 days, the most that is possible',
              )
              .optional(),
          })
          .strict()
          .refine(
            ({ json, blob }) => json === undefined || blob === undefined,
            'give json or blob, not both',
          ),
      )
      .max(LIMITS.tasksPerRequest),
  })
  .strict()
export type QueueTasksPut = z.output<typeof queueTasksPut>

export const queueTasksAdded = z.object({
  tasks: z.array(z.object({ task: z.string(), duplicate: z.boolean() })),
})

/** Why a task has no value. `code` is null where the handler threw: then name, message and stack are its own. */
export const taskError = z.object({
  code: z.enum(ERROR_CODES as [ErrorCode, ...ErrorCode[]]).nullable(),
  name: z.string(),
  message: z.string(),
  stack: z.string().optional(),
})
export type TaskError = z.infer<typeof taskError>

/** How one task ended. Recorded once for each task, and once more for each replay. */
export const queueResult = z.object({
  cursor: z.string(),
  task: z.string(),
  key: z.string().nullable(),
  ok: z.boolean(),
  /** The value as JSON; null with `blob`, and where the handler returned nothing. */
  json: z.string().nullable(),
  blob: z.string().nullable(),
  error: taskError.nullable(),
  /** How often it was begun, in this replay. */
  attempts: z.number(),
  replay: z.number(),
  startedAtMs: z.number(),
  endedAtMs: z.number(),
})
export type QueueResult = z.infer<typeof queueResult>

/** A line that a function printed. */
export const taskLog = z.object({
  seq: z.number(),
  task: z.string(),
  channel: z.enum(['stdout', 'stderr']),
  text: z.string(),
})
export type TaskLog = z.infer<typeof taskLog>

export const queueResultsPage = z.object({
  results: z.array(queueResult),
  /** Of the last result that was read. */
  cursor: z.string(),
  /** What was printed before these results, where `logs` asked for it; the oldest go first where too much was. */
  logs: z.array(taskLog),
  logsNext: z.number(),
})
export type QueueResultsPage = z.infer<typeof queueResultsPage>

/** A task that failed after its last retry, kept until it is replayed or its queue is deleted. */
export const deadLetter = z.object({
  task: z.string(),
  key: z.string().nullable(),
  json: z.string().nullable(),
  blob: z.string().nullable(),
  error: taskError,
  attempts: z.number(),
  replay: z.number(),
  diedAtMs: z.number(),
})
export type DeadLetter = z.infer<typeof deadLetter>

/** `POST /v1/queues/:name/replay` */
export const queueReplay = z
  .object({
    /** Default: all dead letters. */
    tasks: z.array(z.string().max(64)).max(LIMITS.tasksPerRequest).optional(),
  })
  .strict()
