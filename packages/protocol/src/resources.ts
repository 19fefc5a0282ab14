import { z } from 'zod'
import { formatSize, sizeBytes } from './quantity.ts'
import { SandlotError } from './sandlot-error.ts'
import { wholeText } from './whole-text.ts'

/** What the runtime itself may have open. */
const OPEN_FILES_MAX = 65_536

const cpus = z.number().positive().max(1_024)

/** A scalar sets request and limit; `{ request, limit }` sets them apart. Admission and cost go by requests. */
const requestedCpus = z.union([
  cpus.transform(both),
  z
    .object({ request: cpus, limit: cpus })
    .strict()
    .refine(inOrder, 'the request is larger than the limit'),
])
const requestedBytes = z.union([
  sizeBytes.transform(both),
  z
    .object({ request: sizeBytes, limit: sizeBytes })
    .strict()
    .refine(inOrder, 'the request is larger than the limit'),
])

const gpuCount = z.number().int().min(1).max(64)
/** Words of a model's name, such as `H100` or `RTX 4090`. */
const gpuType = wholeText
  .min(1)
  .max(64)
  .regex(/[A-Za-z0-9]/, 'names no model of GPU such as H100')

/** Whole GPUs of the machine, which are nobody else's meanwhile. */
export interface GpuNeed {
  /** Words of the model's name: `H100` is any device with that word in its name. Absent: any model. */
  readonly type?: string
  readonly count: number
}

/** A model's name or `any`: one of it. */
const requestedGpu = z.union([
  gpuType.transform((type): GpuNeed => gpuOf({ type, count: 1 })),
  z
    .object({ type: gpuType.optional(), count: gpuCount })
    .strict()
    .transform(({ type, count }): GpuNeed => gpuOf({ type: type ?? 'any', count })),
])

/** GPUs of complete resources, as records and views hold them. */
export const gpuNeed = z.object({ type: z.string().exactOptional(), count: z.number() })

/**
 * What a sandbox may use. Defaults: cpu `{ request: 0.1, limit: 2 }`, memory `{ request: '20MiB', limit: '1GiB' }`,
 * disk `'512MiB'`, pids 256, processesPerUser as many as pids, openFiles 16384 for each process, fileSize as large as the disk. A disk of up to three quarters of the memory limit is held in memory and counted in that limit; a larger one
 * is on the machine's disk, and counted against what is free there. GPUs: none by default; the sandbox has them to itself, starts cold and can't
 * have its memory saved.
 */
export const resources = z
  .object({
    cpu: requestedCpus.optional(),
    memory: requestedBytes.optional(),
    disk: sizeBytes.optional(),
    pids: z.number().int().min(4).max(4_096).optional(),
    /** Processes and threads of those that one user started. */
    processesPerUser: z.number().int().min(4).max(4_096).optional(),
    /** Files, sockets and pipes that one process may have open. */
    openFiles: z.number().int().min(32).max(OPEN_FILES_MAX).optional(),
    /** The largest that one file may become. */
    fileSize: sizeBytes.refine((bytes) => bytes > 0, 'is 0').optional(),
    gpu: requestedGpu.optional(),
  })
  .strict()
export type ResourcesInput = z.input<typeof resources>

/** The complete resources of a sandbox: past the edge nothing is optional. */
export interface Resources {
  readonly cpu: { readonly request: number; readonly limit: number }
  readonly memory: { readonly request: number; readonly limit: number }
  readonly disk: number
  readonly pids: number
  /** Absent: as many as `pids`. */
  readonly processesPerUser?: number
  /** Of one process. Absent: the default. */
  readonly openFiles?: number
  /** Of one file. Absent: as large as the disk. */
  readonly fileSize?: number
  /** Absent: none. */
  readonly gpu?: GpuNeed
}

/** Complete resources as records and views hold them. */
export const completeResourcesSchema = z.object({
  cpu: z.object({ request: z.number(), limit: z.number() }),
  memory: z.object({ request: z.number(), limit: z.number() }),
  disk: z.number(),
  pids: z.number(),
  processesPerUser: z.number().exactOptional(),
  openFiles: z.number().exactOptional(),
  fileSize: z.number().exactOptional(),
  gpu: gpuNeed.exactOptional(),
})

export const RESOURCES_DEFAULT: Resources = {
  cpu: { request: 0.1, limit: 2 },
  memory: { request: 20 * 2 ** 20, limit: 2 ** 30 },
  disk: 512 * 2 ** 20,
  pids: 256,
}

/** Where the writable files of a sandbox are: in its memory, or in a file on the machine's disk. */
export const DISK_MEDIA = ['memory', 'disk'] as const
export type DiskMedium = (typeof DISK_MEDIA)[number]

/** The most of a memory limit that the disk may take: processes need the rest. */
const DISK_SHARE_MAX = 0.75

/** What fits into the memory limit is held in memory, which is faster and starts at once. */
export function diskMediumOf(size: {
  readonly diskBytes: number
  readonly memoryBytes: number
}): DiskMedium {
  return size.diskBytes <= size.memoryBytes * DISK_SHARE_MAX ? 'memory' : 'disk'
}

/** Smallest memory limit with which the agent, its worlds and one small process live. */
export const MEMORY_BYTES_MIN = 96 * 2 ** 20

/**
 * Parses and completes resources.
 * @throws SandlotError `invalid_request` when they contradict one another; the message says which and what would do.
 */
export function completeResources(input: z.output<typeof resources> | undefined): Resources {
  const memory = input?.memory ?? RESOURCES_DEFAULT.memory
  const complete = {
    cpu: input?.cpu ?? RESOURCES_DEFAULT.cpu,
    memory,
    disk: input?.disk ?? diskDefault(memory),
    pids: input?.pids ?? RESOURCES_DEFAULT.pids,
    ...(input?.processesPerUser === undefined ? {} : { processesPerUser: input.processesPerUser }),
    ...(input?.openFiles === undefined ? {} : { openFiles: input.openFiles }),
    ...(input?.fileSize === undefined ? {} : { fileSize: input.fileSize }),
    ...(input?.gpu === undefined ? {} : { gpu: input.gpu }),
  }
  if (memory.limit < MEMORY_BYTES_MIN) {
    const limit = formatSize(memory.limit)
    throw refused(`resources.memory: a limit of ${limit} is below the least, 96MiB`)
  }
  if (complete.disk < 2 ** 20) throw refused('resources.disk: below the least, 1MiB')
  return complete
}

/** Where none is asked for, in bytes: half of the memory limit, at most the default. */
export function diskDefault({ limit }: Resources['memory']): number {
  return Math.min(RESOURCES_DEFAULT.disk, Math.floor(limit / 2))
}

function refused(message: string): SandlotError {
  return new SandlotError('invalid_request', message)
}

function gpuOf({ type, count }: { readonly type: string; readonly count: number }): GpuNeed {
  return type.toLowerCase() === 'any' ? { count } : { type, count }
}

function both(value: number): { request: number; limit: number } {
  return { request: value, limit: value }
}

function inOrder(range: { request: number; limit: number }): boolean {
  return range.request <= range.limit
}
