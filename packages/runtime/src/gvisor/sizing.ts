/**
 * The arithmetic of a sandbox's memory and disk. Writable files that are held in memory count against the memory limit, as processes
 * do; what the runtime itself needs comes on top. The files' own limits fit into the memory limit all together, so whoever
 * fills a disk meets ENOSPC, and who takes more than the limit in files and memory together ends the sandbox.
 *
 * ```
 * cgroup limit = memory limit
 *              + 40 MiB                 sentry and agent; with 20 or less a full disk kills
 *              + 24 MiB                 gofer, where writable files are on the machine's disk
 *
 * in memory    upper(main) ≤ 3/4, upper(grade) ≤ 1/8, shm of each of the two worlds ≤ 1/16 of the memory limit
 * on the disk  upper(main) as asked for, upper(grade) 1/8 of it, and no less than in memory
 * ```
 * On the disk no count of files can be set: each takes about 3 KiB of the sentry's memory, and so of the memory limit.
 */
import { diskMediumOf } from '@sandlot/protocol'
import type { SandboxLimits } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'

/** Worlds whose writable layer may be on the disk. Where a grader is tried on the image alone it writes little: that is in memory. */
export type DiskWorld = 'main' | 'grade'

export interface SandboxSizes {
  /** Of the main world's writable layer. */
  readonly upperBytes: number
  readonly upperInodes: number
  /** Of a grader's writable layer that is in memory. */
  readonly gradeUpperBytes: number
  readonly gradeUpperInodes: number
  /** Of each world's /dev/shm. */
  readonly shmBytes: number
  /** Of the host's cgroup. */
  readonly cgroupMemoryBytes: number
  /** Of the writable layers that are on the machine's disk; none where they are in memory. */
  readonly disks: readonly { readonly world: DiskWorld; readonly bytes: number }[]
}

const MIB = 2 ** 20
const RUNTIME_BYTES = 40 * MIB
const GOFER_BYTES = 24 * MIB
/** One file for each so many bytes of disk: a source tree's files are larger on average, and each costs the sentry 3 KiB. */
const DISK_BYTES_PER_INODE = 16 * 1024
const INODES_MIN = 4_096
const INODES_MAX = 1_048_576
const SHM_BYTES_MAX = 64 * MIB

type FileLimits = Pick<SandboxLimits, 'memoryBytes' | 'diskBytes'>

export function sizesOf(limits: FileLimits): SandboxSizes {
  const { memoryBytes, diskBytes } = limits
  // A grader writes reports and caches; its tests come with it.
  const gradeUpperBytes = Math.min(diskBytes, memoryBytes / 8)
  const shmBytes = Math.min(SHM_BYTES_MAX, memoryBytes / 16)
  const disks = disksOf(limits, gradeUpperBytes)
  const runtimeBytes = RUNTIME_BYTES + (disks.length > 0 ? GOFER_BYTES : 0)
  return {
    upperBytes: wholePages(diskBytes),
    upperInodes: inodesOf(diskBytes),
    gradeUpperBytes: wholePages(gradeUpperBytes),
    gradeUpperInodes: inodesOf(gradeUpperBytes),
    shmBytes: wholePages(shmBytes),
    cgroupMemoryBytes: wholePages(memoryBytes + runtimeBytes),
    disks,
  }
}

/** What a sandbox may take of the machine's disk; 0 where its writable files are in memory. */
export function promisedDiskBytes(limits: FileLimits): number {
  return sizesOf(limits).disks.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** The most of a sandbox that is saved as its memory: what it has in memory, and its files on the disk. */
export function savedBytesMax(limits: FileLimits): number {
  return (
    limits.memoryBytes + Math.min(promisedDiskBytes(limits), RUNTIME_LIMITS.checkpointDiskBytesMax)
  )
}

function disksOf(limits: FileLimits, gradeBytesMin: number): SandboxSizes['disks'] {
  if (diskMediumOf(limits) === 'memory') return []
  const { diskBytes } = limits
  return [
    { world: 'main', bytes: wholePages(diskBytes) },
    { world: 'grade', bytes: wholePages(Math.max(gradeBytesMin, diskBytes / 8)) },
  ]
}

function inodesOf(bytes: number): number {
  return Math.round(Math.min(INODES_MAX, Math.max(INODES_MIN, bytes / DISK_BYTES_PER_INODE)))
}

function wholePages(bytes: number): number {
  return Math.ceil(bytes / 4096) * 4096
}
