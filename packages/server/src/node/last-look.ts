import type { Sandbox, Usage } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { NodeParts } from './sandboxes.ts'

/** What the writable layers hold, 0 where nobody says; and limits that were met without news of it. */
async function diskUse(entry: Entry, sandbox: Sandbox): Promise<number> {
  try {
    const { worlds } = await sandbox.guest.stats({ timeoutMs: SERVER_LIMITS.lastStatsMs })
    if (worlds.some(({ pidsRefused }) => pidsRefused > 0)) entry.flags.add('pids')
    if (worlds.some(({ userPidsRefused = 0 }) => userPidsRefused > 0)) {
      entry.flags.add('processesPerUser')
    }
    return worlds.reduce((sum, { upperUsedBytes }) => sum + upperUsedBytes, 0)
  } catch {
    return 0
  }
}

/** So long was a sandbox held up by its processor limit before it is worth a flag, and for such a part of what it computed. */
const HELD_UP_MS = 1_000
const HELD_UP_SHARE = 0.1

/** At a sandbox that is about to be ended: what its writable layers hold, and limits that were met. */
export async function lastLook(
  parts: Pick<NodeParts, 'driver'>,
  entry: Entry,
  sandbox: Sandbox,
): Promise<number> {
  const [diskBytes] = await Promise.all([
    diskUse(entry, sandbox),
    noteHeldUp(parts, entry, sandbox),
  ])
  return diskBytes
}

/** Whether the processor limit has held it up for long. */
async function noteHeldUp(
  { driver }: Pick<NodeParts, 'driver'>,
  entry: Entry,
  sandbox: Sandbox,
): Promise<void> {
  try {
    const forMs = await sandbox.heldUpMs()
    if (forMs < HELD_UP_MS) return
    const { cpuMs } = await driver.usage(sandbox)
    if (forMs >= cpuMs * HELD_UP_SHARE) entry.flags.add('cpu')
  } catch {
    // It has died meanwhile: how, its fate tells.
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
