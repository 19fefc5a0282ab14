import { completeResources, formatSize, newId, SandlotError } from '@sandlot/protocol'
import { idFromKey } from '../id-from-key.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { BUILD } from '../node/owners.ts'
import type { SandboxEnded } from '../node/port.ts'
import type { SnapshotServices } from '../snapshots/take.ts'
import { takeMemory } from '../snapshots/take-memory.ts'
import { beginStart } from './begin-start.ts'
import type { MemoryWait, TemplateMemory, WantedMemory } from './templates.ts'
import { waitUntilReady } from './wait-until-ready.ts'

/** The memory of templates, as snapshots whose ids follow from the templates'. */
export function templateMemory(services: () => SnapshotServices): TemplateMemory {
  return {
    save: (wanted, wait) => save(services(), wanted, wait),
    has: (project, snapshot) => services().snapshots.find(project, snapshot) !== undefined,
    isRestorable: (project, snapshot) => isRestorable(services(), project, snapshot),
    announce: (project, snapshot) => {
      const { node, snapshots } = services()
      const { memory } = snapshots.find(project, snapshot) ?? {}
      if (!memory) return
      const { checkpoint, below: image, resources } = memory
      // A hint, which may be lost.
      node.expect({ name: snapshot, checkpoint, image, resources }).catch(() => {})
    },
    drop: async (project, snapshot) => {
      try {
        await services().snapshots.remove(project, snapshot, false)
      } catch (error) {
        const { code } = error instanceof SandlotError ? error : {}
        if (code !== 'snapshot_in_use' && code !== 'snapshot_unknown') throw error
      }
    },
  }
}

async function save(
  services: SnapshotServices,
  { project, template, image, input }: WantedMemory,
  { signal, onLog }: MemoryWait,
): Promise<string> {
  const { node, snapshots } = services
  const id = idFromKey('snapshot', project, template)
  if (snapshots.find(project, id)) {
    if (await isRestorable(services, project, id)) return id
    // After an upgrade, or on another machine: nothing can start from it any more.
    onLog('its memory can not be restored here any more: save it again')
    await snapshots.remove(project, id, true)
  }
  const sandbox = newId('sandbox')
  const waitMs = SERVER_LIMITS.buildRoomMs
  const who = { project: '', owner: BUILD, epoch: 0, checkpointable: true }
  const resources = completeResources(input.resources)
  try {
    await node.acquire({ sandbox, image, resources, ...who, waitMs }, { signal })
    using lent = await node.sandboxes.lend(sandbox, { signal })
    onLog('start what its memory holds')
    using started = await beginStart(lent, input.start, signal)
    await waitUntilReady(lent, {
      started,
      ready: input.ready,
      timeoutMs: input.readyTimeout,
      signal,
    })
    onLog('save its memory')
    started[Symbol.dispose]()
    // A name would be taken from somebody's snapshot.
    const { tags = {}, onRestore } = input
    const body = {
      kind: 'memory' as const,
      tags,
      hidden: true,
      ...(onRestore ? { onRestore } : {}),
    }
    return (await takeMemory(services, { project, lent, body, id, waitMs, signal })).id
  } catch (error) {
    throw meaning(error, resources.memory.limit)
  } finally {
    await node.release({ sandbox, reason: 'its memory is saved, or it could not be' })
  }
}

/** Nobody knows the sandbox: what ended it is said of what was started in it. */
function meaning(error: unknown, limitBytes: number): unknown {
  const ending = error instanceof SandlotError ? error.details?.ending : undefined
  if ((ending as SandboxEnded | undefined)?.kind !== 'oom_limit') return error
  const message = `what start began took more than ${formatSize(limitBytes)} of memory`
  return new SandlotError('image_build_failed', message, {
    hint: 'Give the template more: `resources.memory`.',
    cause: error,
  })
}

async function isRestorable(
  { node, snapshots }: SnapshotServices,
  project: string,
  snapshot: string,
): Promise<boolean> {
  const { memory } = snapshots.find(project, snapshot) ?? {}
  if (!memory) return false
  const { checkpoint, below: image, resources } = memory
  return await node.canRestore({ checkpoint, image, resources })
}
