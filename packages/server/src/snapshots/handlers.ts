import { idOf, LIMITS, SandlotError } from '@sandlot/protocol'
import type { Call, Handlers } from '../http/call.ts'
import { idFromKey } from '../id-from-key.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { hasTag } from '../sandboxes/has-tag.ts'
import { lendFor } from '../sandboxes/use.ts'
import type { SnapshotRecord } from './record.ts'
import { type SnapshotServices, takeFilesystem } from './take.ts'
import { takeMemory } from './take-memory.ts'

type SnapshotRoutes = 'createSnapshot' | 'listSnapshots' | 'getSnapshot' | 'deleteSnapshot'

export function snapshotHandlers(services: SnapshotServices): Pick<Handlers, SnapshotRoutes> {
  const { snapshots } = services
  return {
    createSnapshot: async (call) => {
      const { body, caller, idempotencyKey: key } = call
      const id = key === undefined ? undefined : idFromKey('snapshot', caller.project, key)
      if (body.kind === 'memory') return await snapshots.view(await memory(services, call, id))
      return await snapshots.view(await takeFilesystem(services, call, body, id))
    },
    listSnapshots: async ({ caller, query }) => {
      const named = await snapshots.list(caller.project, query.name)
      const all = named.filter(({ tags }) => (query.tag ?? []).every((tag) => hasTag(tags, tag)))
      const { after, limit = Math.min(100, LIMITS.itemsPerPage) } = query
      const left = all.filter((record) => after === undefined || placeOf(record) > after)
      const page = left.slice(0, limit)
      const items = await Promise.all(page.map((record) => snapshots.view(record)))
      const last = page.at(-1)
      return { items, next: left.length > limit && last ? placeOf(last) : null }
    },
    getSnapshot: async ({ caller, params }) =>
      await snapshots.view(await snapshots.get(caller.project, snapshotIdOf(params.id))),
    deleteSnapshot: async ({ caller, params, query }) => {
      await snapshots.remove(caller.project, snapshotIdOf(params.id), query.force ?? false)
      return undefined
    },
  }
}

/** Where it stands in the list, whatever is deleted meanwhile. */
function placeOf({ createdAtMs, id }: SnapshotRecord): string {
  return `${String(createdAtMs).padStart(16, '0')}${id}`
}

const snapshotId = idOf('snapshot')

function snapshotIdOf(text: string | undefined): string {
  const parsed = snapshotId.safeParse(text)
  if (parsed.success) return parsed.data
  const shown = JSON.stringify((text ?? '').slice(0, 64))
  throw new SandlotError('snapshot_unknown', `${shown} is not the id of a snapshot`)
}

async function memory(
  services: SnapshotServices,
  call: Call<'createSnapshot'>,
  id: string | undefined,
): Promise<SnapshotRecord> {
  const { body, caller, signal } = call
  using lent = await lendFor(services.node, call)
  return await takeMemory(services, {
    ...{ project: caller.project, lent, body, signal, waitMs: SERVER_LIMITS.resumeWaitMs },
    ...(id === undefined ? {} : { id }),
  })
}
