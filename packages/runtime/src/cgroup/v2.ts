import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { CgroupLeaf, Cgroups, LeafLimits, LeafUsage, MemoryEvidence } from './cgroups.ts'
import {
  listDirectories,
  makeParent,
  poll,
  readCache,
  readControl,
  readKeyed,
  readMemoryAbove,
  readNumber,
  readPids,
  tryRemove,
  writeControl,
  writeOptional,
} from './files.ts'

const CONTROLLERS = '+memory +cpu +pids'
const CPU_PERIOD_US = 100_000
const CPU_QUOTA_US_MIN = 1_000
const CPU_WEIGHT_ONE = 100
const CPU_WEIGHT_MAX = 10_000

const MEMORY_NAMES = { limit: 'memory.max', usage: 'memory.current', prefix: '' }

/** `root` is the mount of cgroup2, or a part of it that was delegated to us. */
export function cgroupsV2(root: string, parent: string): Cgroups {
  const directory = join(root, parent)
  return {
    version: 2,
    prepare: async () => {
      await writeControl(join(root, 'cgroup.subtree_control'), CONTROLLERS)
      await makeParent(directory)
      await writeControl(join(directory, 'cgroup.subtree_control'), CONTROLLERS)
    },
    leaf: (hostId) => leaf(join(directory, hostId), hostId),
    memoryAbove: () => readMemoryAbove([root, directory], MEMORY_NAMES),
    list: () => listDirectories(directory),
    dispose: async () => void (await tryRemove(directory)),
  }
}

function leaf(directory: string, hostId: string): CgroupLeaf {
  const file = (name: string) => join(directory, name)
  const limit = async (limits: LeafLimits) => {
    await Promise.all([
      writeControl(file('memory.max'), limits.memoryBytes),
      writeOptional(file('memory.swap.max'), 0),
      writeControl(file('cpu.max'), `${quotaUs(limits.cpus)} ${CPU_PERIOD_US}`),
      writeControl(file('pids.max'), limits.pidsMax),
    ])
  }
  return {
    hostId,
    directories: [directory],
    joinFiles: [file('cgroup.procs')],
    create: async (limits) => {
      await mkdir(directory)
      await limit(limits)
      // The sandbox dies as one: half of it is of no use to anybody.
      await writeOptional(file('memory.oom.group'), 1)
    },
    limit,
    weigh: (share) => writeControl(file('cpu.weight'), weightOf(share)),
    heldUpMs: async () => (await readKeyed(file('cpu.stat'), 'throttled_usec')) / 1e3,
    // The peak of memory.peak is reset for the writer's own descriptor only, so it covers the start too.
    resetPeak: async () => {},
    usage: () => usage(directory),
    memoryBytes: () => memoryBytes(directory),
    evidence: () => evidence(directory),
    processes: () => readPids(file('cgroup.procs')),
    kill: (timeoutMs) => kill(directory, timeoutMs),
    remove: (timeoutMs) => poll(timeoutMs, () => tryRemove(directory)),
  }
}

function quotaUs(cpus: number | undefined): string {
  if (cpus === undefined) return 'max'
  return String(Math.max(CPU_QUOTA_US_MIN, Math.round(cpus * CPU_PERIOD_US)))
}

function weightOf(share: number): number {
  return Math.max(1, Math.min(Math.round(share * CPU_WEIGHT_ONE), CPU_WEIGHT_MAX))
}

async function usage(directory: string): Promise<LeafUsage> {
  const [cpuUs, memoryNowBytes, memoryPeakBytes] = await Promise.all([
    readKeyed(join(directory, 'cpu.stat'), 'usage_usec'),
    memoryBytes(directory),
    peakBytes(directory),
  ])
  return { cpuMs: cpuUs / 1e3, memoryBytes: memoryNowBytes, memoryPeakBytes }
}

async function memoryBytes(directory: string): Promise<number> {
  const chargedBytes = await readNumber(join(directory, 'memory.current'))
  return Math.max(0, chargedBytes - (await readCache(join(directory, 'memory.stat'))))
}

/** Kernels before 5.19 keep none: then it is no less than what is charged now. */
async function peakBytes(directory: string): Promise<number> {
  const peak = await readNumber(join(directory, 'memory.peak'))
  return peak || (await readNumber(join(directory, 'memory.current')))
}

async function evidence(directory: string): Promise<MemoryEvidence> {
  const events = join(directory, 'memory.events')
  const [oomKills, oom, limitBytes, peak] = await Promise.all([
    readKeyed(events, 'oom_kill'),
    readKeyed(events, 'oom'),
    readNumber(join(directory, 'memory.max')),
    peakBytes(directory),
  ])
  return { oomKills, limitHit: oom > 0, limitBytes, peakBytes: peak }
}

async function kill(directory: string, timeoutMs: number): Promise<boolean> {
  if ((await readControl(join(directory, 'cgroup.procs'))) === undefined) return true
  await writeOptional(join(directory, 'cgroup.kill'), 1)
  return poll(timeoutMs, async () => {
    const events = await readControl(join(directory, 'cgroup.events'))
    return events === undefined || events.includes('populated 0')
  })
}
