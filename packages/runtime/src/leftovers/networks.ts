import { readdir } from 'node:fs/promises'
import { isHostId } from '../gvisor/paths.ts'
import {
  NAMESPACES,
  namespacePrefix,
  networkTag,
  openNames,
  routerNames,
  tableName,
} from '../network/open/names.ts'
import { areRulesThere, removeInterface, removeRules } from '../network/open/open-network.ts'
import { exists } from '../network/open/programs.ts'
import { removeRouter } from '../network/open/router.ts'
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
 * The router of all sandboxes of a driver, and the rules: a living one needs them, and so does any sandbox that is left, so they are
 * found when no namespace is there any more.
 */
export async function findRules({ stateDirectory }: LeftoverScope): Promise<readonly Leftover[]> {
  const tag = networkTag(stateDirectory)
  if ((await findNamespaces({ stateDirectory })).length > 0) return []
  const router = routerNames(tag)
  const found: Leftover[] = []
  if (await exists(router.namespacePath)) {
    const remove = () => removeRouter(router)
    found.push({ kind: 'network', what: router.namespacePath, remove })
  }
  if (await areRulesThere(tag)) {
    const remove = () => removeRules(tag)
    found.push({ kind: 'network', what: `rules inet ${tableName(tag)}`, remove })
  }
  return found
}
