/**
 * What an agent may say, in shapes and bounds: everything from a guest passes one of these before it is
 * believed. Unknown keys are dropped. Byte strings are copied, so that none keeps the chunk it came in alive.
 */
import { FRAME_LIMITS } from '@sandlot/protocol/frames'
import { z } from 'zod'
import {
  GUEST_EXEC_LIMITS,
  GUEST_FILE_KINDS,
  GUEST_FLAGS,
  WORLD_ENDERS,
  WORLD_STATES,
} from './guest.ts'
import { GUEST_LIMITS } from './limits.ts'

const count = z.number().int().min(0).max(GUEST_LIMITS.countMax)
const processId = z.number().int().min(0).max(0x7fff_ffff)
const userId = z.number().int().min(0).max(0xffff_ffff)
/** What an episode chooses, as the size of a sparse file or a file's time: no number of it may lose the sandbox. */
const chosen = z.number().transform((value) => {
  return Math.max(-GUEST_LIMITS.countMax, Math.min(value, GUEST_LIMITS.countMax))
})
const text = z.string().max(GUEST_LIMITS.nameLength)
const encoder = new TextEncoder()

function byteString(bytesMax: number) {
  return z
    .union([z.instanceof(Uint8Array), z.string().max(bytesMax)])
    .transform((value) => (typeof value === 'string' ? encoder.encode(value) : value.slice()))
    .refine((value) => value.length <= bytesMax, `longer than ${bytesMax} bytes`)
}

/** A command line for display: its beginning. */
const shown = byteString(FRAME_LIMITS.payload).transform((value) =>
  value.slice(0, GUEST_LIMITS.commandBytes),
)

export const nothing = z.object({})
export const listening = z.object({
  broken: z.number().optional(),
  unanswered: z.number().optional(),
})

export const hello = z.object({
  protocol: z.literal(1),
  agent: text,
  boot: byteString(16).refine((boot) => boot.length === 16, 'not 16 bytes'),
  sandbox: text,
  uptimeMs: count,
  frozen: z.boolean().exactOptional(),
  worlds: z.array(z.object({ world: text, state: z.enum(WORLD_STATES) })).max(GUEST_LIMITS.worlds),
  execs: z
    .array(z.object({ exec: text, world: text, running: z.boolean() }))
    .max(GUEST_LIMITS.execs),
})

export const connected = z.object({ kind: z.literal('connected') })

export const listeners = z.object({
  ports: z
    .array(
      z.object({
        port: z.number().int().min(0).max(65_535),
        address: byteString(16).transform(addressText),
      }),
    )
    .max(GUEST_LIMITS.listeners),
})

export const worldReady = z.object({ elapsedUs: count })
export const worldEnd = z.object({ elapsedUs: count, by: z.enum(WORLD_ENDERS) })

export const news = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('world_ended'), world: text, by: z.literal('episode') }),
  z.object({
    kind: z.literal('flag'),
    world: text,
    flag: z.enum(GUEST_FLAGS),
    exec: text.exactOptional(),
  }),
])

export const stats = z.object({
  worlds: z
    .array(
      z.object({
        world: text,
        processes: count,
        upperUsedBytes: count,
        upperTotalBytes: count,
        upperInodesUsed: count,
        upperInodesTotal: count,
        pidsPeak: count,
        pidsRefused: count,
        userPidsRefused: count.exactOptional(),
      }),
    )
    .max(GUEST_LIMITS.worlds),
  rings: count,
})

export const processes = z.object({
  processes: z
    .array(
      z.object({
        pid: processId,
        parent: processId,
        exec: text.exactOptional(),
        command: shown,
      }),
    )
    .max(GUEST_LIMITS.processes),
})

export const execStarted = z.object({ kind: z.literal('started'), pid: processId })
export const execOffset = z.object({
  kind: z.literal('offset'),
  channel: z.union([z.literal(1), z.literal(2)]),
  offset: count,
  droppedBytes: count,
})

const outputCount = z.object({ totalBytes: count, droppedBytes: count })

export const execResult = z
  .object({
    exitCode: z.number().int().min(0).max(255).exactOptional(),
    signal: z.number().int().min(1).max(127).exactOptional(),
    timedOut: z.boolean(),
    killed: z.boolean(),
    durationUs: count,
    stdout: outputCount,
    stderr: outputCount,
    left: count,
    /** An agent that an earlier daemon started doesn't say. */
    limits: z.array(z.enum(GUEST_EXEC_LIMITS)).max(GUEST_EXEC_LIMITS.length).default([]),
  })
  .refine(
    ({ exitCode, signal }) => (exitCode === undefined) !== (signal === undefined),
    'neither or both of exitCode and signal',
  )
  .transform(({ stdout, stderr, ...result }) => ({ ...result, counts: { stdout, stderr } }))

export const execKill = z.object({ processes: count })

export const execList = z.object({
  execs: z
    .array(
      z.object({
        exec: text,
        world: text,
        running: z.boolean(),
        pid: processId,
        /** An agent that an earlier daemon started says its first argument alone. */
        argv0: shown.exactOptional(),
        command: shown.exactOptional(),
        cut: z.boolean().exactOptional(),
        /** Unix time. */
        startedMs: count,
        processes: count,
        screenBytes: count.exactOptional(),
      }),
    )
    .max(GUEST_LIMITS.execs),
})

const fileAttributes = z.object({
  sizeBytes: chosen,
  mode: z.number().int().min(0).max(0o177777),
  mtimeMs: chosen,
})
const fileOwner = { uid: userId, gid: userId }

export const fileStat = fileAttributes.extend({
  kind: z.enum(GUEST_FILE_KINDS),
  ...fileOwner,
  target: byteString(GUEST_LIMITS.pathBytes).exactOptional(),
})

/** The event ahead of a file's content; it is always a regular file. */
export const readStat = fileAttributes
  .extend({ kind: z.literal('stat'), ...fileOwner })
  .transform((stat) => ({ ...stat, kind: 'file' as const }))

export const fileEntry = fileAttributes.extend({
  name: byteString(GUEST_LIMITS.pathBytes),
  kind: z.enum(GUEST_FILE_KINDS),
})

export const fileSize = z.object({ sizeBytes: count })
export const fileCount = z.object({ count })
export const tarEntries = z.object({ entries: count })

function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  const words = Array.from({ length: bytes.length / 2 }, (_, at) =>
    (((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)).toString(16),
  )
  const whole = `[${words.join(':')}]`
  // The URL's own form of it is the short one.
  return URL.canParse(`http://${whole}`) ? new URL(`http://${whole}`).hostname.slice(1, -1) : ''
}
