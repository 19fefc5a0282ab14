import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { CgroupLeaf, Cgroups, LeafLimits, LeafUsage, MemoryEvidence } from './cgroups.ts'
import {
  codeOf,
  listDirectories,
  makeParent,
  poll,
  readCache,
  readKeyed,
  readMemoryAbove,
  readNumber,
  readPids,
  tryRemove,
  writeControl,
  writeOptional,
} from './files.ts'

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
const MEMORY_NAMES = {
  limit: 'memory.limit_in_bytes',
  usage: 'memory.usage_in_bytes',
  prefix: 'total_',
}
/** A peak this near to the limit counts as at it: the kernel charges in batches of pages. */
const LIMIT_SLACK_BYTES = 2 * 2 ** 20

export function cgroupsV1(mounts: ControllerMounts, parent: string): Cgroups {
  const parents: ControllerMounts = {
    memory: join(mounts.memory, parent),
    cpu: join(mounts.cpu, parent),
    cpuacct: join(mounts.cpuacct, parent),
    pids: join(mounts.pids, parent),
  }
  const all = distinct(parents)
  return {
    version: 1,
    prepare: async () => void (await Promise.all(all.map(makeParent))),
    leaf: (hostId) => leaf(parents, hostId),
    memoryAbove: () => readMemoryAbove([mounts.memory, parents.memory], MEMORY_NAMES),
    list: async () => [...new Set((await Promise.all(all.map(listDirectories))).flat())],
    dispose: async () => void (await Promise.all(all.map(tryRemove))),
  }
}

function distinct(mounts: ControllerMounts): readonly string[] {
  return [...new Set([mounts.memory, mounts.cpu, mounts.cpuacct, mounts.pids])]
}

function leaf(parents: ControllerMounts, hostId: string): CgroupLeaf {
  const memory = join(parents.memory, hostId)
  const cpu = join(parents.cpu, hostId)
  const cpuacct = join(parents.cpuacct, hostId)
  const pids = join(parents.pids, hostId)
  const directories = distinct({ memory, cpu, cpuacct, pids })
  const processes = () => readPids(join(memory, 'cgroup.procs'))

  const limit = async (limits: LeafLimits) => {
    await Promise.all([
      limitMemory(memory, limits.memoryBytes),
      writeControl(join(cpu, 'cpu.cfs_quota_us'), quotaUs(limits.cpus)),
      writeControl(join(pids, 'pids.max'), limits.pidsMax),
    ])
  }

  return {
    hostId,
    directories,
    joinFiles: directories.map((directory) => join(directory, 'cgroup.procs')),
    create: async (limits) => {
      await Promise.all(directories.map((directory) => mkdir(directory)))
      await writeControl(join(cpu, 'cpu.cfs_period_us'), CPU_PERIOD_US)
      await limit(limits)
    },
    limit,
    weigh: (share) => writeControl(join(cpu, 'cpu.shares'), sharesOf(share)),
    heldUpMs: async () => (await readKeyed(join(cpu, 'cpu.stat'), 'throttled_time')) / 1e6,
    resetPeak: () => writeControl(join(memory, 'memory.max_usage_in_bytes'), 0),
    usage: () => usage(memory, cpuacct),
    memoryBytes: () => memoryBytes(memory),
    evidence: () => evidence(memory),
    processes,
    kill: (timeoutMs) => kill(processes, timeoutMs),
    remove: (timeoutMs) =>
      poll(timeoutMs, async () => (await Promise.all(directories.map(tryRemove))).every(Boolean)),
  }
}

/** Memory and swap together must never be below memory alone, so the sum goes out of the way first. */
async function limitMemory(directory: string, bytes: number): Promise<void> {
  const sum = join(directory, 'memory.memsw.limit_in_bytes')
  await writeOptional(sum, -1)
  await writeControl(join(directory, 'memory.limit_in_bytes'), bytes)
  await writeOptional(sum, bytes)
}

function quotaUs(cpus: number | undefined): number {
  if (cpus === undefined) return -1
  return Math.max(CPU_QUOTA_US_MIN, Math.round(cpus * CPU_PERIOD_US))
}

function sharesOf(share: number): number {
  return Math.max(CPU_SHARES_MIN, Math.min(Math.round(share * CPU_SHARES_ONE), CPU_SHARES_MAX))
}

async function usage(memory: string, cpuacct: string): Promise<LeafUsage> {
  const [cpuNs, memoryNowBytes, memoryPeakBytes] = await Promise.all([
    readNumber(join(cpuacct, 'cpuacct.usage')),
    memoryBytes(memory),
    readNumber(join(memory, 'memory.max_usage_in_bytes')),
  ])
  return { cpuMs: cpuNs / 1e6, memoryBytes: memoryNowBytes, memoryPeakBytes }
}

async function memoryBytes(memory: string): Promise<number> {
  const chargedBytes = await readNumber(join(memory, 'memory.usage_in_bytes'))
  return Math.max(0, chargedBytes - (await readCache(join(memory, 'memory.stat'))))
}

async function evidence(memory: string): Promise<MemoryEvidence> {
  const [oomKills, limitBytes, peakBytes] = await Promise.all([
    readKeyed(join(memory, 'memory.oom_control'), 'oom_kill'),
    readNumber(join(memory, 'memory.limit_in_bytes')),
    readNumber(join(memory, 'memory.max_usage_in_bytes')),
  ])
  // `failcnt` says nothing: newer kernels no longer count.
  const limitHit = limitBytes > 0 && peakBytes >= limitBytes - LIMIT_SLACK_BYTES
  return { oomKills, limitHit, limitBytes, peakBytes }
}

/** The sentry is PID 1 of its stubs' namespace, so the first round ends nearly all; forks race, hence rounds. */
function kill(processes: () => Promise<readonly number[]>, timeoutMs: number): Promise<boolean> {
  return poll(timeoutMs, async () => {
    const pids = await processes()
    for (const pid of pids) sendKill(pid)
    return pids.length === 0
  })
}

function sendKill(pid: number): void {
  // 0 stands for a process outside this daemon's pid namespace, and would mean our own group.
  if (pid <= 0) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}
