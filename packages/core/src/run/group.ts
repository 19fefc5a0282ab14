import type { Group } from './run.ts'

/**
 * Whether a group has all that it gets. A group ends with its last live member; one that gets
 * another member later begins anew. Sizes, quorum and cuts are further reasons to end here.
 */
export function isComplete(group: Group): boolean {
  return group.live === 0
}
