/**
 * The arithmetic of a sandbox's memory. All writable files of a sandbox live in memory, so its cgroup must hold them
 * all at their limits, the promised memory of its processes, and the runtime itself: then whoever fills the disk meets
 * ENOSPC, and only who takes more memory than promised ends the sandbox.
 *
 * ```
 * cgroup limit = promised memory
 *              + upper(main) + upper(grade) + 2 × shm          sizes of every tmpfs
 *              + 3 KiB × inodes(main and grade)                the sentry's heap, which `size=` doesn't count
 *              + 256 KiB × processes                           each has two on the host, kept when it is gone
 *              + 40 MiB                                        sentry and agent; with 20 or less a full disk kills
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
const BYTES_PER_INODE = 3 * 1024
const BYTES_PER_PROCESS = 256 * 1024
/** One file for each so many bytes of disk: a source tree's files are larger on average. */
const DISK_BYTES_PER_INODE = 16 * 1024
const INODES_MIN = 4_096
const INODES_MAX = 1_048_576
const SHM_BYTES_MAX = 64 * MIB
const GRADE_UPPER_BYTES_MIN = 64 * MIB

export function sizesOf(limits: SandboxLimits): SandboxSizes {
  const upperBytes = limits.diskBytes
  // A grader writes reports and caches; its tests come with it.
  const gradeUpperBytes = Math.min(upperBytes, Math.max(GRADE_UPPER_BYTES_MIN, upperBytes / 4))
  const shmBytes = Math.min(SHM_BYTES_MAX, limits.memoryBytes / 4)
  const upperInodes = inodesOf(upperBytes)
  const gradeUpperInodes = inodesOf(gradeUpperBytes)
  const tmpfsBytes = upperBytes + gradeUpperBytes + 2 * shmBytes
  const inodeBytes = BYTES_PER_INODE * (upperInodes + gradeUpperInodes)
  const runtimeBytes = RUNTIME_BYTES + BYTES_PER_PROCESS * limits.pidsMax
  return {
    upperBytes: wholePages(upperBytes),
    upperInodes,
    gradeUpperBytes: wholePages(gradeUpperBytes),
    gradeUpperInodes,
    shmBytes: wholePages(shmBytes),
    cgroupMemoryBytes: wholePages(limits.memoryBytes + tmpfsBytes + inodeBytes + runtimeBytes),
  }
}

function inodesOf(bytes: number): number {
  return Math.round(Math.min(INODES_MAX, Math.max(INODES_MIN, bytes / DISK_BYTES_PER_INODE)))
}

function wholePages(bytes: number): number {
  return Math.ceil(bytes / 4096) * 4096
}
