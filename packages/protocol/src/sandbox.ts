import { z } from 'zod'
import { idOf } from './ids.ts'
import { environment, userName, workingDirectory } from './kernel-text.ts'
import { LIMITS } from './limits.ts'
import { networkChoice, networkView } from './network.ts'
import { durationOf } from './quantity.ts'
import { completeResourcesSchema, DISK_MEDIA, resources } from './resources.ts'
import { secretUses } from './secret.ts'
import { startPoint } from './start-point.ts'
import { wholeText } from './whole-text.ts'

export const tags = z
  .record(wholeText.min(1).max(LIMITS.tagLength), wholeText.max(LIMITS.tagLength))
  .refine((value) => Object.keys(value).length <= LIMITS.tags, `more than ${LIMITS.tags} tags`)
export type Tags = z.infer<typeof tags>

/**
 * What to do where this machine can't restore a memory snapshot: start from its files, without the processes. Default: refuse with
 * `snapshot_incompatible`.
 */
export const ifIncompatible = z.enum(['cold'])

/** `POST /v1/sandboxes`. */
export const sandboxCreate = z
  .object({
    from: startPoint,
    /** Of a memory snapshot they are fixed. */
    resources: resources.optional(),
    /** What its commands may reach. Default: nothing. */
    network: networkChoice.optional(),
    /** What is put into requests on their way out, and never enters it. A variable is of `env` or of these. */
    secrets: secretUses.optional(),
    env: environment.optional(),
    workdir: workingDirectory.optional(),
    user: userName.optional(),
    /**
     * How long it lives with no exec, stream, port connection or lease. Default 10 minutes. What its own processes have open to other
     * hosts does not count.
     */
    keepWarm: durationOf(LIMITS.lifeMsMin, '10 minutes').optional(),
    /** How long it lives at most. Default: no end. */
    lifetime: durationOf(LIMITS.lifeMsMin, 'no end').optional(),
    tags: tags.optional(),
    /**
     * Its memory can be saved: `pause`, `fork` and `snapshot` of kind `memory`. It starts cold then, never from the pool. Default:
     * false, but true from a memory snapshot.
     */
    checkpointable: z.boolean().optional(),
    ifIncompatible: ifIncompatible.optional(),
  })
  .strict()
export type SandboxCreateInput = z.input<typeof sandboxCreate>
export type SandboxCreate = z.output<typeof sandboxCreate>

export const KEEP_WARM_DEFAULT_MS = 600_000

export const SANDBOX_STATES = ['starting', 'running', 'paused', 'stopping', 'stopped'] as const
export type SandboxState = (typeof SANDBOX_STATES)[number]

/** How a sandbox came up: from a blank of the pool, by a start of its own, or from saved memory, restored for it or ahead of need. */
export const SANDBOX_ORIGINS = ['pool', 'cold', 'restored', 'restored-ahead'] as const
export type SandboxOrigin = (typeof SANDBOX_ORIGINS)[number]

/** How a sandbox ended. `expired`: its lifetime or keep-warm time was over. `shutdown`: its daemon was stopped. */
export const SANDBOX_ENDINGS = [
  'stopped',
  'oom_limit',
  'oom_host',
  'expired',
  'shutdown',
  'protocol',
  'lost',
] as const
export type SandboxEnding = (typeof SANDBOX_ENDINGS)[number]

export const sandboxView = z.object({
  id: idOf('sandbox'),
  project: z.string(),
  state: z.enum(SANDBOX_STATES),
  image: z.string(),
  node: z.string(),
  /** `client`, or the attempt it serves: `run/key/attempt`. */
  owner: z.string(),
  resources: completeResourcesSchema,
  /** Where its writable files are: in its memory, or on the machine's disk. */
  diskMedium: z.enum(DISK_MEDIA),
  tags,
  env: z.record(z.string(), z.string()),
  workdir: z.string(),
  network: networkView,
  /** Variables that hold placeholders, and of which secret each is. */
  secrets: secretUses.optional(),
  createdAtMs: z.number(),
  /** From the request to the world being open. */
  createMs: z.number().optional(),
  origin: z.enum(SANDBOX_ORIGINS).optional(),
  /** Whether its memory can be saved. Default: no. */
  checkpointable: z.boolean().optional(),
  /** The sandbox that it is a copy of. */
  parent: z.string().optional(),
  /** Where its streams can be reached: today the daemon itself. */
  endpoint: z.string(),
  ending: z
    .object({ kind: z.enum(SANDBOX_ENDINGS), detail: z.string(), atMs: z.number() })
    .optional(),
  usage: z
    .object({
      cpuMs: z.number(),
      memoryBytes: z.number(),
      memoryPeakBytes: z.number(),
      /** What its writable files take, in memory or on disk. */
      diskBytes: z.number(),
      /** To and from other hosts. */
      networkBytes: z.number(),
    })
    .optional(),
})
export type SandboxView = z.infer<typeof sandboxView>
