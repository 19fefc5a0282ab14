import type { Resources } from '@sandlot/protocol'
import { DriverError } from '@sandlot/runtime'
import type { NodeParts } from './sandboxes.ts'
import { limitsOf } from './start.ts'

export interface SavedOf {
  /** Its name among the checkpoints. */
  readonly checkpoint: string
  /** Id of the image below it. */
  readonly image: string
  readonly resources: Resources
}

/** Whether this machine can start from saved memory: another runtime, agent or processor than it was taken with can't. */
export async function canRestore(
  { driver, images, checkpoints }: Pick<NodeParts, 'driver' | 'images' | 'checkpoints'>,
  { checkpoint, image, resources }: SavedOf,
): Promise<boolean> {
  using pinned = await images.pin(image)
  const { layers } = pinned.image
  const directory = checkpoints.path(checkpoint)
  try {
    await driver.checkCheckpoint({ directory, layers, limits: limitsOf(resources) })
    return true
  } catch (error) {
    if (error instanceof DriverError && error.code === 'snapshot_incompatible') return false
    throw error
  }
}
