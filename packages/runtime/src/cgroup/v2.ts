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
  const [cpuUs, chargedBytes, memoryPeakBytes, cacheBytes] = await Promise.all([
    readKeyed(join(directory, 'cpu.stat'), 'usage_usec'),
    readNumber(join(directory, 'memory.current')),
    readNumber(join(directory, 'memory.peak')),
    readCache(join(directory, 'memory.stat')),
  ])
  const memoryBytes = Math.max(0, chargedBytes - cacheBytes)
  return { cpuMs: cpuUs / 1e3, memoryBytes, memoryPeakBytes }
}

async function evidence(directory: string): Promise<MemoryEvidence> {
  const events = join(directory, 'memory.events')
  const [oomKills, oom, limitBytes, peakBytes] = await Promise.all([
    readKeyed(events, 'oom_kill'),
    readKeyed(events, 'oom'),
    readNumber(join(directory, 'memory.max')),
    readNumber(join(directory, 'memory.peak')),
  ])
  return { oomKills, limitHit: oom > 0, limitBytes, peakBytes }
}

async function kill(directory: string, timeoutMs: number): Promise<boolean> {
  if ((await readControl(join(directory, 'cgroup.procs'))) === undefined) return true
  await writeOptional(join(directory, 'cgroup.kill'), 1)
  return poll(timeoutMs, async () => {
    const events = await readControl(join(directory, 'cgroup.events'))
    return events === undefined || events.includes('populated 0')
  })
}
