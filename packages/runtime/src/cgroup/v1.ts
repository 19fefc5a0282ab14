import { join } from 'node:path'
import type { CgroupLeaf, Cgroups, LeafLimits, LeafUsage, MemoryEvidence } from './cgroups.ts'
import { ControlFiles, poll } from './files.ts'
import type { ControlIo } from './io.ts'
import { kernelLog, oomDomain } from './kernel-log.ts'
import { killInRounds } from './kill-rounds.ts'

/** Where each controller is mounted; two names may share one directory (`cpu,cpuacct`). */
export interface ControllerMounts {
  readonly memory: string
  readonly cpu: string
  readonly cpuacct: string
  readonly pids: string
}

const CPU_PERIOD_US = 100_000
const CPU_QUOTA_US_MIN = 1_000
const CPU_SHARES_ONE = 1_024
const CPU_SHARES_MIN = 2
const CPU_SHARES_MAX = 262_144
/** A peak this near to the limit counts as at it: the kernel charges in batches of pages. */
const LIMIT_SLACK_BYTES = 2 * 2 ** 20
const USAGE = 'memory.usage_in_bytes'
const WITH_ALL_BELOW = { limit: 'memory.limit_in_bytes', usage: USAGE, prefix: 'total_' }

export function cgroupsV1(
  mounts: ControllerMounts,
  parent: string,
  io?: ControlIo,
  log: () => Iterable<string> = kernelLog,
): Cgroups {
  const files = new ControlFiles(io)
  const parents: ControllerMounts = {
    memory: join(mounts.memory, parent),
    cpu: join(mounts.cpu, parent),
    cpuacct: join(mounts.cpuacct, parent),
    pids: join(mounts.pids, parent),
  }
  const all = distinct(parents)
  return {
    version: 1,
    prepare: async () => void (await Promise.all(all.map((each) => files.makeUnlessThere(each)))),
    leaf: (hostId) => leaf({ files, log }, parents, hostId),
    memoryAbove: async () => files.memoryAbove([mounts.memory, parents.memory], WITH_ALL_BELOW),
    list: async () => {
      const names = await Promise.all(all.map((each) => files.directories(each)))
      return [...new Set(names.flat())]
    },
    dispose: async () => void (await Promise.all(all.map((each) => files.tryRemove(each)))),
  }
}

function distinct(mounts: ControllerMounts): readonly string[] {
  return [...new Set([mounts.memory, mounts.cpu, mounts.cpuacct, mounts.pids])]
}

interface Parts {
  readonly files: ControlFiles
  readonly log: () => Iterable<string>
}

function leaf({ files, log }: Parts, parents: ControllerMounts, hostId: string): CgroupLeaf {
  const memory = join(parents.memory, hostId)
  const cpu = join(parents.cpu, hostId)
  const cpuacct = join(parents.cpuacct, hostId)
  const pids = join(parents.pids, hostId)
  const directories = distinct({ memory, cpu, cpuacct, pids })
  const procs = join(memory, 'cgroup.procs')
  const memoryBytes = () => files.memory(memory, { usage: USAGE, prefix: '' })

  const limit = async (limits: LeafLimits) => {
    limitMemory(files, memory, limits.memoryBytes)
    files.write(join(cpu, 'cpu.cfs_quota_us'), quotaUs(limits.cpus))
    files.write(join(pids, 'pids.max'), limits.pidsMax)
  }

  return {
    hostId,
    directories,
    joinFiles: directories.map((directory) => join(directory, 'cgroup.procs')),
    create: async (limits) => {
      await Promise.all(directories.map((directory) => files.make(directory)))
      files.write(join(cpu, 'cpu.cfs_period_us'), CPU_PERIOD_US)
      await limit(limits)
    },
    limit,
    weigh: async (share) => files.write(join(cpu, 'cpu.shares'), sharesOf(share)),
    heldUpMs: async () => files.keyed(join(cpu, 'cpu.stat'), 'throttled_time') / 1e6,
    resetPeak: async () => files.write(join(memory, 'memory.max_usage_in_bytes'), 0),
    usage: async (): Promise<LeafUsage> => ({
      cpuMs: files.number(join(cpuacct, 'cpuacct.usage')) / 1e6,
      memoryBytes: memoryBytes(),
      memoryPeakBytes: files.number(join(memory, 'memory.max_usage_in_bytes')),
    }),
    memoryBytes: async () => memoryBytes(),
    evidence: async () => evidence({ files, log }, memory, hostId),
    processes: async () => files.pids(procs),
    kill: (timeoutMs) => killInRounds(files, procs, timeoutMs),
    remove: (timeoutMs) =>
      poll(timeoutMs, async () => {
        const removed = await Promise.all(directories.map((each) => files.tryRemove(each)))
        return removed.every(Boolean)
      }),
  }
}

/** Memory and swap together must never be below memory alone, so the sum goes out of the way first. */
function limitMemory(files: ControlFiles, directory: string, bytes: number): void {
  const sum = join(directory, 'memory.memsw.limit_in_bytes')
  files.writeOptional(sum, -1)
  files.write(join(directory, 'memory.limit_in_bytes'), bytes)
  files.writeOptional(sum, bytes)
}

function quotaUs(cpus: number | undefined): number {
  if (cpus === undefined) return -1
  return Math.max(CPU_QUOTA_US_MIN, Math.round(cpus * CPU_PERIOD_US))
}

function sharesOf(share: number): number {
  return Math.max(CPU_SHARES_MIN, Math.min(Math.round(share * CPU_SHARES_ONE), CPU_SHARES_MAX))
}

/** Whose need it was that it was killed for, the kernel writes into its log alone; where that is silent, its peak has to tell. */
function evidence({ files, log }: Parts, memory: string, hostId: string): MemoryEvidence {
  const oomKills = files.keyed(join(memory, 'memory.oom_control'), 'oom_kill')
  const limitBytes = files.number(join(memory, 'memory.limit_in_bytes'))
  const peakBytes = files.number(join(memory, 'memory.max_usage_in_bytes'))
  const domain = oomKills > 0 ? oomDomain(hostId, log) : undefined
  // The peak counts files too, which fill any group without harm. `failcnt` says nothing: newer kernels no longer count.
  const isAtLimit = limitBytes > 0 && peakBytes >= limitBytes - LIMIT_SLACK_BYTES
  return { oomKills, limitHit: domain ? domain === 'own' : isAtLimit, limitBytes, peakBytes }
}
