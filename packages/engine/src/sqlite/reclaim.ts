import type { DatabaseSync } from 'node:sqlite'
import { RECLAIM_PAGES_MIN, RECLAIM_PAGES_STEP, RECLAIM_SHARE } from '../limits.ts'
import type { OperationHandlers } from './operation.ts'

/**
 * Gives pages that were freed back to the disk, where they are many: a few are used again soon. Databases of before can't, and are used
 * again in place.
 */
export function reclaimOperations(database: DatabaseSync): OperationHandlers<'storage.reclaim'> {
  const number = (pragma: string) =>
    Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])
  const isMuch = () => {
    const free = number('freelist_count')
    return free >= RECLAIM_PAGES_MIN && free >= RECLAIM_SHARE * number('page_count')
  }
  const incremental = 2
  const able = number('auto_vacuum') === incremental
  return {
    'storage.reclaim': () => {
      if (!able || !isMuch()) return false
      database.prepare(`PRAGMA incremental_vacuum(${RECLAIM_PAGES_STEP})`).all()
      return isMuch()
    },
  }
}
