import type { Coordinator } from '../coordinator/coordinator.ts'
import type { Node } from '../node/node.ts'
import type { Templates } from '../templates/templates.ts'
import type { SnapshotRecord } from './record.ts'

export interface SnapshotUsers {
  readonly node?: Node | undefined
  readonly coordinator?: Coordinator | undefined
  readonly templates?: Templates | undefined
}

/** What was started from a snapshot and lives, or will start more from it; undefined where there is nothing. */
export function userOf(
  { id, image, parent, memory }: SnapshotRecord,
  { node, coordinator, templates }: SnapshotUsers,
): string | undefined {
  // A snapshot without any change has the image that others are started from too.
  const isOwn = image !== parent
  for (const { record } of node?.sandboxes.entries.values() ?? []) {
    const isFrom = record.from === id || (isOwn && (record.from ?? record.image) === image)
    if (isFrom && record.parent === undefined) return `the sandbox ${record.sandbox}`
  }
  const start = memory?.checkpoint ?? (isOwn ? image : undefined)
  const run = start === undefined ? undefined : coordinator?.unfinishedFrom(start)
  if (run !== undefined) return `the run ${run}`
  const template = templates?.madeOf(id)
  return template === undefined ? undefined : `the template ${template}`
}
