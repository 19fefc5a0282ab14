import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ControlFiles, poll } from '../cgroup/files.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import type { Leftover, LeftoverScope } from './leftover.ts'

/** A sandbox's leaf below one parent, in every hierarchy that has it. */
export interface LeafFound {
  readonly hostId: string
  readonly directories: readonly string[]
}

export const CGROUP_ROOT = '/sys/fs/cgroup'

const files = new ControlFiles()

/** All leaves of a parent, of both versions of cgroups: a machine may have been started anew with the other one. */
export async function leavesOf(
  parent: string,
  root: string = CGROUP_ROOT,
): Promise<readonly LeafFound[]> {
  const byName = new Map<string, string[]>()
  for (const directory of parentDirectories(parent, root)) {
    for (const name of await files.directories(directory)) {
      byName.set(name, [...(byName.get(name) ?? []), join(directory, name)])
    }
  }
  return [...byName].map(([hostId, directories]) => ({ hostId, directories }))
}

/** Names of parents that may be of drivers. */
export function cgroupParents(root: string = CGROUP_ROOT): readonly string[] {
  const names = hierarchies(root).flatMap((each) => namesIn(each))
  return [...new Set(names)].filter((name) => name.startsWith('sandlot-'))
}

export async function findCgroups({ stateDirectory }: LeftoverScope): Promise<readonly Leftover[]> {
  const leaves = await leavesOf(basename(stateDirectory))
  return leaves.map(({ hostId, directories }) => ({
    kind: 'cgroup',
    what: directories.join(' '),
    hostId,
    remove: () => removeLeaf(directories),
  }))
}

/** Removes an empty parent. True once it is gone. */
export async function removeParent(parent: string, root: string = CGROUP_ROOT): Promise<boolean> {
  const gone = await Promise.all(
    parentDirectories(parent, root).map((each) => files.tryRemove(each)),
  )
  return gone.every(Boolean)
}

/** Ends what is in it first: membership alone says what is a sandbox's. */
async function removeLeaf(directories: readonly string[]): Promise<boolean> {
  const empty = await poll(RUNTIME_LIMITS.killMs, async () => {
    const members = await membersOf({ directories })
    for (const pid of members) sendKill(pid)
    return members.length === 0
  })
  if (!empty) return false
  return poll(RUNTIME_LIMITS.removeMs, async () => {
    const gone = await Promise.all(directories.map((each) => files.tryRemove(each)))
    return gone.every(Boolean)
  })
}

/** Its processes. 0 stands for one that this process can't see. */
export async function membersOf({
  directories,
}: Pick<LeafFound, 'directories'>): Promise<readonly number[]> {
  return [...new Set(directories.flatMap((each) => files.pids(join(each, 'cgroup.procs'))))]
}

function sendKill(pid: number): void {
  // What is outside of this process's sight can't be ended by it; and 0 would mean its own group.
  if (pid <= 0) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}

function parentDirectories(parent: string, root: string): readonly string[] {
  return hierarchies(root).flatMap((each) => {
    const directory = join(each, parent)
    return existsSync(directory) ? [directory] : []
  })
}

/** The mount of cgroup2, or one for each controller; links among them (`cpu` to `cpu,cpuacct`) are of the same. */
function hierarchies(root: string): readonly string[] {
  const below = readdirSyncOr(root).flatMap((entry) =>
    entry.isDirectory() ? [join(root, entry.name)] : [],
  )
  return [root, ...below]
}

function namesIn(directory: string): readonly string[] {
  return readdirSyncOr(directory).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
}

function readdirSyncOr(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}
