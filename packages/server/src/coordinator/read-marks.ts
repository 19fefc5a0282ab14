import type { Log } from '@sandlot/engine'
import { COORDINATOR_LIMITS } from './limits.ts'
import { countThrough } from './stored-results.ts'

/** How many records of a stream a cursor stands for: whoever asks for what comes after it has taken so many. */
export interface ReadMarks {
  /** A page was served: `cursor` is that of its last record. */
  served(after: string, page: { readonly records: number; readonly cursor: string }): void
  through(cursor: string): Promise<number>
}

export function openReadMarks(log: Log, stream: string): ReadMarks {
  /** Of the pages that were served last, oldest first. */
  const known = new Map<string, number>()

  function remember(cursor: string, records: number) {
    known.delete(cursor)
    known.set(cursor, records)
    const [oldest] = known.keys()
    if (known.size > COORDINATOR_LIMITS.readMarks && oldest !== undefined) known.delete(oldest)
  }

  return {
    served(after, { records, cursor }) {
      const before = after === '' ? 0 : known.get(after)
      if (before !== undefined && records > 0) remember(cursor, before + records)
    },
    async through(cursor) {
      // One that is not known is from before a restart, or out of the middle of a page.
      const records = known.get(cursor) ?? (await countThrough(log, stream, cursor))
      remember(cursor, records)
      return records
    },
  }
}
