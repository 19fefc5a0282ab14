import { findCgroups } from './cgroup-leaves.ts'
import { findDirectories, findDiskNames, findMounts } from './files.ts'
import type { Finder, Leftover, LeftoverScope } from './leftover.ts'
import { findNamespaces, findRules } from './networks.ts'
import { findProcesses } from './processes.ts'

/** What a living driver looks for again and again: each look is cheap, and a sandbox's processes are the members of its cgroup. */
export const DRIVER_FINDERS: readonly Finder[] = [
  findMounts,
  findNamespaces,
  findCgroups,
  findDirectories,
  findDiskNames,
]

/** All there are, in the order in which what they find can be removed: what holds another thing comes before it. */
export const FINDERS: readonly Finder[] = [findProcesses, ...DRIVER_FINDERS, findRules]

/** All that sandboxes of one driver have on this machine, in the order in which it can be removed. */
export async function findLeftovers(
  scope: LeftoverScope,
  finders: readonly Finder[] = FINDERS,
): Promise<readonly Leftover[]> {
  return (await Promise.all(finders.map((find) => find(scope)))).flat()
}

/** Removes one after the other. Those that are still there afterwards. */
export async function removeLeftovers(
  leftovers: readonly Leftover[],
): Promise<readonly Leftover[]> {
  const stuck: Leftover[] = []
  for (const each of leftovers) if (!(await each.remove().catch(() => false))) stuck.push(each)
  return stuck
}

export function describeLeftover({ kind, what }: Leftover): string {
  return `${kind} ${what}`
}
