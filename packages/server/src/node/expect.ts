import { diskMediumOf } from '@sandlot/protocol'
import type { ExpectRequest } from './port.ts'
import type { NodeParts } from './sandboxes.ts'
import { limitsOf } from './start.ts'

/** Tells the pool which of its kinds is about to be asked for. */
export async function expectSandboxes(
  { images, checkpoints, starter }: Pick<NodeParts, 'images' | 'checkpoints' | 'starter'>,
  { name, count = starter.pool.first, image, resources, ...kind }: ExpectRequest,
): Promise<void> {
  const { checkpoint, checkpointable } = kind
  if (checkpoint === undefined) {
    // Others start cold, or take a blank of their sort, which is made once they were there.
    const onDisk = diskMediumOf(limitsOf(resources)) === 'disk'
    if (!checkpointable && !onDisk) starter.pool.expect(name, count)
    return
  }
  if (!checkpoints.isSnapshot(checkpoint)) return
  using pinned = await images.pin(image)
  const { layers } = pinned.image
  starter.pool.expect(name, count, { checkpoint, layers, limits: limitsOf(resources) })
}
