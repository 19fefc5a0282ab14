import type { Entry } from './entry.ts'
import { specFor } from './put-over.ts'
import type { NodeParts } from './sandboxes.ts'
import { type Started, type Starting, startSandbox } from './start.ts'
import { stopFirmly } from './stop-firmly.ts'

/** Started while it is written down who wants it. Nobody hears of a sandbox before both are done; of the two none stays alone. */
export async function startOwned(
  parts: NodeParts,
  entry: Entry,
  how: Omit<Starting, 'signal'>,
): Promise<Started> {
  const { signal } = entry.abort
  const [written, started] = await Promise.allSettled([
    parts.ownership.put(entry.record),
    startSandbox(parts.starter, specFor(entry), { ...how, signal }),
  ])
  if (started.status === 'rejected') throw started.reason
  if (written.status === 'fulfilled') return started.value
  await stopFirmly(started.value.sandbox, parts)
  throw written.reason
}
