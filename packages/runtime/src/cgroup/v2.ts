import { join } from 'node:path'
import type { CgroupLeaf, Cgroups, LeafLimits, LeafUsage, MemoryEvidence } from './cgroups.ts'
import { handOn } from './delegation.ts'
import { ControlFiles, poll } from './files.ts'
import type { ControlIo } from './io.ts'
import { killInRounds } from './kill-rounds.ts'

const CPU_PERIOD_US = 100_000
const CPU_QUOTA_US_MIN = 1_000
const CPU_WEIGHT_ONE = 100
const CPU_WEIGHT_MAX = 10_000
/** Each counts what is below it too. */
const MEMORY = { limit: 'memory.max', usage: 'memory.current', prefix: '' }

/** `root` is the mount of cgroup2: the machine's, or in a container the part of it that the container has. */
export function cgroupsV2(root: string, parent: string, io?: ControlIo): Cgroups {
  const files = new ControlFiles(io)
  const directory = join(root, parent)
  return {
    version: 2,
    prepare: async () => {
      await handOn(files, root)
      await files.makeUnlessThere(directory)
      await handOn(files, directory)
    },
    leaf: (hostId) => leaf(files, join(directory, hostId), hostId),
    memoryAbove: async () => files.memoryAbove([root, directory], MEMORY),
    list: () => files.directories(directory),
    dispose: async () => void (await files.tryRemove(directory)),
  }
}

function leaf(files: ControlFiles, directory: string, hostId: string): CgroupLeaf {
  const file = (name: string) => join(directory, name)
  // `memory.high` stays without a limit: over it the kernel slows a sandbox down instead of ending it, and nobody is told.
  const limit = async (limits: LeafLimits) => {
    files.write(file('memory.max'), limits.memoryBytes)
    files.writeOptional(file('memory.swap.max'), 0)
    files.write(file('cpu.max'), `${quotaUs(limits.cpus)} ${CPU_PERIOD_US}`)
    files.write(file('pids.max'), limits.pidsMax)
  }
  return {
    hostId,
    directories: [directory],
    joinFiles: [file('cgroup.procs')],
    create: async (limits) => {
      await files.make(directory)
      await limit(limits)
      // The sandbox dies as one: half of it is of no use to anybody.
      files.writeOptional(file('memory.oom.group'), 1)
    },
    limit,
    weigh: async (share) => files.write(file('cpu.weight'), weightOf(share)),
    heldUpMs: async () => files.keyed(file('cpu.stat'), 'throttled_usec') / 1e3,
    // The peak of memory.peak is reset for the writer's own descriptor only, so it covers the start too.
    resetPeak: async () => {},
    usage: async (): Promise<LeafUsage> => ({
      cpuMs: files.keyed(file('cpu.stat'), 'usage_usec') / 1e3,
      memoryBytes: files.memory(directory, MEMORY),
      memoryPeakBytes: peakBytes(files, directory),
    }),
    memoryBytes: async () => files.memory(directory, MEMORY),
    evidence: async () => evidence(files, directory),
    processes: async () => files.pids(file('cgroup.procs')),
    kill: (timeoutMs) => kill(files, directory, timeoutMs),
    remove: (timeoutMs) => poll(timeoutMs, () => files.tryRemove(directory)),
  }
}

function quotaUs(cpus: number | undefined): string {
  if (cpus === undefined) return 'max'
  return String(Math.max(CPU_QUOTA_US_MIN, Math.round(cpus * CPU_PERIOD_US)))
}

function weightOf(share: number): number {
  return Math.max(1, Math.min(Math.round(share * CPU_WEIGHT_ONE), CPU_WEIGHT_MAX))
}

/** Kernels before 5.19 keep none: then it is no less than what is charged now. */
function peakBytes(files: ControlFiles, directory: string): number {
  const peak = files.number(join(directory, 'memory.peak'))
  return peak || files.number(join(directory, 'memory.current'))
}

/** A leaf has nothing below it, so its counts are its own: `oom` is its limit's, `oom_kill` whoever's limit or need it was. */
function evidence(files: ControlFiles, directory: string): MemoryEvidence {
  const events = join(directory, 'memory.events')
  return {
    oomKills: files.keyed(events, 'oom_kill'),
    limitHit: files.keyed(events, 'oom') > 0,
    limitBytes: files.number(join(directory, 'memory.max')),
    peakBytes: peakBytes(files, directory),
  }
}

async function kill(files: ControlFiles, directory: string, timeoutMs: number): Promise<boolean> {
  const procs = join(directory, 'cgroup.procs')
  if (files.read(procs) === undefined) return true
  const order = join(directory, 'cgroup.kill')
  // Kernels before 5.14 take no such order.
  if (!files.writeIfThere(order, 1)) return killInRounds(files, procs, timeoutMs)
  return poll(timeoutMs, () => {
    const events = files.read(join(directory, 'cgroup.events'))
    return events === undefined || events.includes('populated 0')
  })
}
