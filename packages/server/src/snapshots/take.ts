import { newId, SandlotError, type SnapshotCreate } from '@sandlot/protocol'
import type { ImageStore } from '@sandlot/runtime'
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
  { node, images, snapshots, now }: SnapshotServices,
  call: SandboxCall,
  { name, tags = {}, exclude = [] }: SnapshotCreate,
  id = newId('snapshot'),
): Promise<SnapshotRecord> {
  using lent = await lendFor(node, call)
  const entry = node.sandboxes.entries.get(lent.id)
  if (!entry) throw new SandlotError('sandbox_gone', `the sandbox ${lent.id} has ended`)
  const { image: parent } = entry.record
  const { signal } = call
  try {
    const difference = lent.guest.tar.difference('main', { exclude: [...exclude] }, { signal })
    const image = await images.extend({ parent, difference }, { signal })
    // Between its making and its record nothing else keeps it.
    using _ = await images.pin(image.id)
    const before = await images.get(parent)
    return await snapshots.add({
      id,
      project: call.caller.project,
      kind: 'filesystem',
      ...(name === undefined ? {} : { name }),
      tags,
      image: image.id,
      parent,
      sandbox: lent.id,
      sizeBytes: Math.max(0, image.sizeBytes - before.sizeBytes),
      createdAtMs: now(),
    })
  } catch (error) {
    throw await lent.explain(error)
  }
}
