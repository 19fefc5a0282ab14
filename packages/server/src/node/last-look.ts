import type { Sandbox, Usage } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { NodeParts } from './sandboxes.ts'

/** What the writable layers hold, 0 where nobody says; and limits that were met without news of it. */
export async function diskUse(entry: Entry, sandbox: Sandbox): Promise<number> {
  try {
    const { worlds } = await sandbox.guest.stats({ timeoutMs: SERVER_LIMITS.lastStatsMs })
    if (worlds.some(({ pidsRefused }) => pidsRefused > 0)) entry.flags.add('pids')
    return worlds.reduce((sum, { upperUsedBytes }) => sum + upperUsedBytes, 0)
  } catch {
    return 0
  }
}

/** What a living sandbox uses now; undefined where it can't be told. */
export async function usageNow(
  { driver }: Pick<NodeParts, 'driver'>,
  entry: Entry,
): Promise<Usage | undefined> {
  const { sandbox } = entry
  if (!sandbox) return undefined
  const [usage, diskBytes] = await Promise.all([
    driver.usage(sandbox).catch(() => undefined),
    diskUse(entry, sandbox),
  ])
  return usage && { ...usage, diskBytes: Math.max(diskBytes, usage.diskBytes) }
}
