import type { Coordinator } from '../coordinator/coordinator.ts'
import type { Node } from '../node/node.ts'
import type { SnapshotRecord } from './record.ts'

/** What was started from a snapshot and lives, or will start more from it; undefined where there is nothing. */
export function userOf(
  { id, image, parent }: SnapshotRecord,
  { node, coordinator }: { readonly node?: Node; readonly coordinator?: Coordinator },
): string | undefined {
  // A snapshot without any change has the image that others are started from too.
  const isOwn = image !== parent
  for (const { record } of node?.sandboxes.entries.values() ?? []) {
    const isFrom =
      record.from === id || (isOwn && record.from === undefined && record.image === image)
    if (isFrom && record.parent === undefined) return `the sandbox ${record.sandbox}`
  }
  const run = isOwn ? coordinator?.unfinishedFrom(image) : undefined
  return run === undefined ? undefined : `the run ${run}`
}
