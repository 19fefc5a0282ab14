import { newId, SandlotError, type SnapshotCreate } from '@sandlot/protocol'
import type { Image, ImageStore } from '@sandlot/runtime'
import type { Lent } from '../node/lend.ts'
import type { Node } from '../node/node.ts'
import { lendFor, type SandboxCall } from '../sandboxes/use.ts'
import type { SnapshotRecord } from './record.ts'
import type { Snapshots } from './snapshots.ts'

export interface SnapshotServices {
  readonly node: Node
  readonly images: ImageStore
  readonly snapshots: Snapshots
  readonly now: () => number
}

/**
 * Saves the files of a running sandbox as one layer over the image that it was started from; the sandbox goes on. What is written
 * meanwhile is in it or not. Fails as the sandbox does, with `disk_full`, or where something in it can't be stored.
 */
export async function takeFilesystem(
  services: SnapshotServices,
  call: SandboxCall,
  body: SnapshotCreate,
  id = newId('snapshot'),
): Promise<SnapshotRecord> {
  using lent = await lendFor(services.node, call)
  try {
    return await services.snapshots.whileMaking(() => take(services, { call, body, id, lent }))
  } catch (error) {
    throw await lent.explain(error)
  }
}

interface Taking {
  readonly call: SandboxCall
  readonly body: SnapshotCreate
  readonly id: string
  readonly lent: Lent
}

async function take(
  { node, images, snapshots, now }: SnapshotServices,
  { call, body, id, lent }: Taking,
): Promise<SnapshotRecord> {
  const { name, tags = {}, exclude = [] } = body
  const { signal } = call
  const entry = node.sandboxes.entries.get(lent.id)
  if (!entry) throw new SandlotError('sandbox_gone', `the sandbox ${lent.id} has ended`)
  const { image: below, from = below } = entry.record
  const difference = lent.guest.tar.difference('main', { exclude: [...exclude] }, { signal })
  const image = await images.extend({ parent: below, difference }, { signal })
  return await snapshots.add({
    id,
    project: call.caller.project,
    kind: 'filesystem',
    ...(name === undefined ? {} : { name }),
    tags,
    image: image.id,
    parent: from,
    sandbox: lent.id,
    sizeBytes: addedBytes(image, await images.get(below)),
    createdAtMs: now(),
  })
}

/** Of layers that the parent doesn't have. */
function addedBytes(image: Image, parent: Image): number {
  const below = new Set(parent.layers.map(({ digest }) => digest))
  const added = image.layers.filter(({ digest }) => !below.has(digest))
  return added.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
}
