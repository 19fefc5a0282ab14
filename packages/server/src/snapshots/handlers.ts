import { idOf, LIMITS, SandlotError } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
import { idFromKey } from '../id-from-key.ts'
import { hasTag } from '../sandboxes/has-tag.ts'
import type { SnapshotRecord } from './record.ts'
import { type SnapshotServices, takeFilesystem } from './take.ts'

type SnapshotRoutes = 'createSnapshot' | 'listSnapshots' | 'getSnapshot' | 'deleteSnapshot'

export function snapshotHandlers(services: SnapshotServices): Pick<Handlers, SnapshotRoutes> {
  const { snapshots } = services
  return {
    createSnapshot: async (call) => {
      const { body, caller, idempotencyKey: key } = call
      if (body.kind === 'memory') throw noMemory()
      const id = key === undefined ? undefined : idFromKey('snapshot', caller.project, key)
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

function noMemory(): SandlotError {
  return new SandlotError('unsupported', 'this daemon saves no memory of sandboxes', {
    hint: "Say kind: 'filesystem'.",
  })
}
