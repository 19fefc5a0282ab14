import type { Call, Handlers } from '../http/call.ts'
import { pageOf } from '../http/page.ts'
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
      const { name, tag = [], all } = query
      const wanted = (await snapshots.list(caller.project, name))
        .filter(({ hidden }) => !hidden || all || name !== undefined)
        .filter(({ tags }) => tag.every((each) => hasTag(tags, each)))
      const { items, next } = pageOf(wanted, query)
      const views = await Promise.all(items.map((record) => snapshots.view(record)))
      return { items: views, next }
    },
    getSnapshot: async ({ caller, params }) =>
      await snapshots.view(await snapshots.get(caller.project, params.id ?? '')),
    deleteSnapshot: async ({ caller, params, query }) => {
      await snapshots.remove(caller.project, params.id ?? '', query.force ?? false)
      return undefined
    },
  }
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
