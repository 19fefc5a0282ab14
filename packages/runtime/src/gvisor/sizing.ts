/**
 * The arithmetic of a sandbox's memory. All writable files of a sandbox live in memory and count against its limit, as its
 * processes do; what the runtime itself needs comes on top. The files' own limits fit into the memory limit all together, so whoever
 * fills a disk meets ENOSPC, and who takes more than the limit in files and memory together ends the sandbox.
 *
 * ```
 * cgroup limit = memory limit
 *              + 40 MiB                 sentry and agent; with 20 or less a full disk kills
 *
 * upper(main) ≤ 3/4, upper(grade) ≤ 1/8, shm of each of the two worlds ≤ 1/16 of the memory limit
 * ```
 */
import type { SandboxLimits } from '../driver.ts'

export interface SandboxSizes {
  /** Of the main world's writable layer. */
  readonly upperBytes: number
  readonly upperInodes: number
  /** Of a grader's writable layer over it. */
  readonly gradeUpperBytes: number
  readonly gradeUpperInodes: number
  /** Of each world's /dev/shm. */
  readonly shmBytes: number
  /** Of the host's cgroup. */
  readonly cgroupMemoryBytes: number
}

const MIB = 2 ** 20
const RUNTIME_BYTES = 40 * MIB
/** One file for each so many bytes of disk: a source tree's files are larger on average, and each costs the sentry 3 KiB. */
const DISK_BYTES_PER_INODE = 16 * 1024
const INODES_MIN = 4_096
const INODES_MAX = 1_048_576
const SHM_BYTES_MAX = 64 * MIB

export function sizesOf(limits: SandboxLimits): SandboxSizes {
  const upperBytes = limits.diskBytes
  // A grader writes reports and caches; its tests come with it.
  const gradeUpperBytes = Math.min(upperBytes, limits.memoryBytes / 8)
  const shmBytes = Math.min(SHM_BYTES_MAX, limits.memoryBytes / 16)
  return {
    upperBytes: wholePages(upperBytes),
    upperInodes: inodesOf(upperBytes),
    gradeUpperBytes: wholePages(gradeUpperBytes),
    gradeUpperInodes: inodesOf(gradeUpperBytes),
    shmBytes: wholePages(shmBytes),
    cgroupMemoryBytes: wholePages(limits.memoryBytes + RUNTIME_BYTES),
  }
}

function inodesOf(bytes: number): number {
  return Math.round(Math.min(INODES_MAX, Math.max(INODES_MIN, bytes / DISK_BYTES_PER_INODE)))
}

function wholePages(bytes: number): number {
  return Math.ceil(bytes / 4096) * 4096
}
