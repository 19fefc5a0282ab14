import { readdir } from 'node:fs/promises'
import { isHostId } from '../gvisor/paths.ts'
import {
  NAMESPACES,
  namespacePrefix,
  networkTag,
  openNames,
  tableName,
} from '../network/open/names.ts'
import { areRulesThere, removeInterface, removeRules } from '../network/open/open-network.ts'
import type { Leftover, LeftoverScope } from './leftover.ts'

/** Namespaces with interfaces of sandboxes; with one its pair and its routes go too. */
export async function findNamespaces({
  stateDirectory,
}: LeftoverScope): Promise<readonly Leftover[]> {
  const tag = networkTag(stateDirectory)
  const prefix = namespacePrefix(tag)
  const names = await readdir(NAMESPACES).catch(() => [])
  return names.flatMap((name) => {
    const hostId = name.slice(prefix.length)
    if (!name.startsWith(prefix) || !isHostId(hostId)) return []
    const names = openNames(tag, hostId)
    return [
      { kind: 'network', what: names.namespacePath, hostId, remove: () => removeInterface(names) },
    ]
  })
}

/**
 * The rules for all sandboxes of a driver: a living one needs them, and so does any sandbox that is left, so they are found when no
 * namespace is there any more.
 */
export async function findRules({ stateDirectory }: LeftoverScope): Promise<readonly Leftover[]> {
  const tag = networkTag(stateDirectory)
  const table = tableName(tag)
  if ((await findNamespaces({ stateDirectory })).length > 0) return []
  if (!(await areRulesThere(tag))) return []
  return [{ kind: 'network', what: `rules inet ${table}`, remove: () => removeRules(tag) }]
}
