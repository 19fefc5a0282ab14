/** What is metered of one sandbox for one stretch of time, and sums of it. */
import { diskMediumOf, type Resources, USAGE_KINDS } from '@sandlot/protocol'
import { z } from 'zod'

const MIB = 2 ** 20

/** What was set aside, times how long. */
export interface Allocated {
  readonly ms: number
  readonly cpuMs: number
  readonly memoryMibMs: number
  /** Of the machine's disk; what lies in memory counts there. */
  readonly diskMibMs: number
  /** Whole GPUs. */
  readonly gpuMs: number
}

/** A stretch of a sandbox's life, or of what waited in the pool: a record of the ledger. */
export const meteredStretch = z.object({
  /** The same stretch is recorded once, whoever records it again. */
  key: z.string(),
  fromMs: z.number(),
  toMs: z.number(),
  project: z.string(),
  kind: z.enum([...USAGE_KINDS, 'idle']),
  run: z.string().nullable(),
  /** Of an attempt that is not its episode's first. */
  retry: z.boolean(),
  /** 1 for the stretch with which a sandbox begins. */
  sandboxes: z.number(),
  ms: z.number(),
  cpuMs: z.number(),
  memoryMibMs: z.number(),
  diskMibMs: z.number(),
  /** Absent in records of before there were any. */
  gpuMs: z.number().default(0),
  usedCpuMs: z.number(),
  networkBytes: z.number(),
  micros: z.number().nullable(),
})
export type MeteredStretch = z.infer<typeof meteredStretch>

/** Sums of stretches. */
export interface MeteredSum {
  sandboxes: number
  ms: number
  cpuMs: number
  memoryMibMs: number
  diskMibMs: number
  gpuMs: number
  usedCpuMs: number
  networkBytes: number
  /** null: none of it had a price. */
  micros: number | null
}

export function allocatedOver({ cpu, memory, disk, gpu }: Resources, ms: number): Allocated {
  const onDisk = diskMediumOf({ diskBytes: disk, memoryBytes: memory.limit }) === 'disk'
  return {
    ms,
    cpuMs: cpu.request * ms,
    memoryMibMs: (memory.request / MIB) * ms,
    diskMibMs: onDisk ? (disk / MIB) * ms : 0,
    gpuMs: (gpu?.count ?? 0) * ms,
  }
}

export function noSum(): MeteredSum {
  return {
    ...{ sandboxes: 0, ms: 0, cpuMs: 0, memoryMibMs: 0, diskMibMs: 0, gpuMs: 0 },
    ...{ usedCpuMs: 0, networkBytes: 0, micros: null },
  }
}

export function addSum(to: MeteredSum, more: Readonly<MeteredSum>): void {
  for (const key of AMOUNTS) to[key] += more[key]
  if (more.micros !== null) to.micros = (to.micros ?? 0) + more.micros
}

const AMOUNTS = [
  'sandboxes',
  'ms',
  'cpuMs',
  'memoryMibMs',
  'diskMibMs',
  'gpuMs',
  'usedCpuMs',
  'networkBytes',
] as const

/**
 * The stretch cut at each multiple of `unitMs`. Each part has its share of time and amounts; whole numbers stay whole, and together
 * the parts are the stretch.
 */
export function cutStretch(stretch: MeteredStretch, unitMs: number): readonly MeteredStretch[] {
  const { fromMs, toMs } = stretch
  if (toMs <= (Math.floor(fromMs / unitMs) + 1) * unitMs) return [stretch]
  const parts: MeteredStretch[] = []
  let before = shareOf(stretch, 0)
  for (let at = fromMs; at < toMs; ) {
    const next = Math.min(toMs, (Math.floor(at / unitMs) + 1) * unitMs)
    const through = shareOf(stretch, next === toMs ? 1 : (next - fromMs) / (toMs - fromMs))
    parts.push({
      ...stretch,
      ...{ fromMs: at, toMs: next, sandboxes: parts.length === 0 ? stretch.sandboxes : 0 },
      ms: through.ms - before.ms,
      cpuMs: through.cpuMs - before.cpuMs,
      memoryMibMs: through.memoryMibMs - before.memoryMibMs,
      diskMibMs: through.diskMibMs - before.diskMibMs,
      gpuMs: through.gpuMs - before.gpuMs,
      usedCpuMs: through.usedCpuMs - before.usedCpuMs,
      networkBytes: through.networkBytes - before.networkBytes,
      micros: stretch.micros === null ? null : through.micros - before.micros,
    })
    before = through
    at = next
  }
  return parts
}

function shareOf(stretch: MeteredStretch, share: number) {
  return {
    ms: stretch.ms * share,
    cpuMs: stretch.cpuMs * share,
    memoryMibMs: stretch.memoryMibMs * share,
    diskMibMs: stretch.diskMibMs * share,
    gpuMs: stretch.gpuMs * share,
    usedCpuMs: Math.round(stretch.usedCpuMs * share),
    networkBytes: Math.round(stretch.networkBytes * share),
    micros: Math.round((stretch.micros ?? 0) * share),
  }
}
