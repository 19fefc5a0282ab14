import type { SandboxOrigin } from '@sandlot/protocol'
import type { Entry } from './entry.ts'
import { seenBy } from './lend.ts'
import { openNetwork } from './networks.ts'
import { runOnRestore } from './on-restore.ts'
import { BUILD } from './owners.ts'
import type { AcquireRequest } from './port.ts'
import { putOver, specFor } from './put-over.ts'
import type { NodeParts } from './sandboxes.ts'
import type { SavedMemory } from './start.ts'
import { startOwned } from './start-owned.ts'
import { stopFirmly } from './stop-firmly.ts'

/**
 * From a place in the register to a sandbox in which its owner's commands can run: started, with its way out, and after its
 * `onRestore`. What fails leaves nothing in the machine; what a killed daemon leaves is recorded as `unready`.
 */
export async function bringUp(
  parts: NodeParts,
  entry: Entry,
  request: AcquireRequest,
  turnMs: number,
): Promise<SandboxOrigin> {
  const { ownership, checkpoints } = parts
  const { signal } = entry.abort
  const { checkpoint } = request
  using _ = checkpoint === undefined ? undefined : await checkpoints.hold(checkpoint)
  const onRestore = checkpoint === undefined ? undefined : request.onRestore
  if (onRestore) entry.record = { ...entry.record, unready: true }
  const memory = memoryOf(parts, entry, request)
  const { sandbox, origin } = await startOwned(parts, entry, { memory, turnMs })
  entry.origin = origin
  entry.sandbox = sandbox
  try {
    await openNetwork(parts, entry, sandbox, { signal })
    // Nothing is restored by a cold start.
    if (onRestore && origin !== 'cold') {
      await runOnRestore(sandbox, seenBy(entry), onRestore, signal)
    }
    if (onRestore) {
      const { unready: __, ...ready } = entry.record
      entry.record = ready
      await ownership.put(ready)
    }
    return origin
  } catch (error) {
    await stopFirmly(sandbox, parts)
    throw error
  }
}

function memoryOf(
  { images, ownership, checkpoints }: NodeParts,
  entry: Entry,
  request: AcquireRequest,
): SavedMemory | undefined {
  const { checkpoint, coldInstead: image } = request
  if (checkpoint === undefined) return undefined
  const cold = async (id: string) => {
    const { checkpoint: _, ...start } = request
    await putOver(images, entry, { ...start, image: id })
    await ownership.put(entry.record)
    return specFor(entry)
  }
  // Whoever tries a snapshot out asks for no more of it.
  const isWanted = checkpoints.isSnapshot(checkpoint) && request.owner !== BUILD
  return {
    path: checkpoints.path(checkpoint),
    ...(isWanted ? { ahead: checkpoint } : {}),
    ...(image === undefined ? {} : { cold: () => cold(image) }),
  }
}
