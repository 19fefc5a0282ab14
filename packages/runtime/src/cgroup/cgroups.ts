/**
 * Control groups of sandboxes: one leaf for each under a parent of ours, made ahead of the start.
 *
 * ```
 * v1   /sys/fs/cgroup/<memory|cpu|cpuacct|pids>/<parent>/<hostId>
 * v2   /sys/fs/cgroup/<parent>/<hostId>          controllers delegated to <parent>
 * ```
 * Membership of a leaf is the truth about what lives: everything a sandbox starts on the host is born in it and
 * can't leave, and a leaf's name is never used twice, so that no pid is ever taken for another.
 */

export interface LeafLimits {
  /** Over it the kernel kills the sandbox. No swap on top of it. */
  readonly memoryBytes: number
  /** Processors, may be a fraction. Default: all. */
  readonly cpus?: number
  /** Processes and threads of the host. */
  readonly pidsMax: number
}

export interface LeafUsage {
  readonly cpuMs: number
  /** Without the cache of files, which the kernel drops when memory is asked for. */
  readonly memoryBytes: number
  /** With it. */
  readonly memoryPeakBytes: number
}

/** What speaks for or against the kernel having killed it at its own limit. */
export interface MemoryEvidence {
  /** Processes of the leaf killed for memory, by its own limit or by the machine's. */
  readonly oomKills: number
  /** The leaf's own limit was met and nothing could be freed. */
  readonly limitHit: boolean
  readonly limitBytes: number
  readonly peakBytes: number
}

/** The tightest limit of memory that groups above the leaves set, and what of it is still to be had. Infinity without any. */
export interface MemoryAbove {
  readonly limitBytes: number
  readonly availableBytes: number
}

export interface CgroupLeaf {
  readonly hostId: string
  /** Absolute directories, for the state file. */
  readonly directories: readonly string[]
  /** A process joins by writing "0" into each, before it becomes another program. */
  readonly joinFiles: readonly string[]

  /** Makes the directories. Fails where one exists: a host id is used once. */
  create(limits: LeafLimits): Promise<void>

  /** Sets limits of a living leaf. */
  limit(limits: LeafLimits): Promise<void>

  /** Its share of the processors, beside other leaves, when all want more than there are. 1 is that of a leaf that was never weighed. */
  weigh(share: number): Promise<void>

  /** For how long its quota of processor time has held its threads up, all together; 0 where the kernel doesn't say. */
  heldUpMs(): Promise<number>

  /** Forgets the peak so far, where the kernel can. */
  resetPeak(): Promise<void>

  usage(): Promise<LeafUsage>
  /** The memory of its usage alone. */
  memoryBytes(): Promise<number>
  evidence(): Promise<MemoryEvidence>

  /** Pids of what lives in it, in no order. Empty when the leaf is gone. */
  processes(): Promise<readonly number[]>

  /** SIGKILL to all, until none is left. False when that did not come about in time. */
  kill(timeoutMs: number): Promise<boolean>

  /** Removes an empty leaf. Idempotent. False while the kernel still holds it. */
  remove(timeoutMs: number): Promise<boolean>
}

export interface Cgroups {
  readonly version: 1 | 2
  /** Makes our parent, and delegates controllers to it. Idempotent. */
  prepare(): Promise<void>
  /** Touches nothing: the leaf may not exist. */
  leaf(hostId: string): CgroupLeaf
  memoryAbove(): Promise<MemoryAbove>
  /** Host ids that have a leaf, or a part of one. */
  list(): Promise<readonly string[]>
  /** Removes the parent when no leaf is left in it. */
  dispose(): Promise<void>
}
