import type { Log } from '@sandlot/engine'
import { COORDINATOR_LIMITS } from './limits.ts'
import { readRows } from './result-log.ts'

/** How many rows of a run a cursor stands for: whoever asks for what comes after it has taken so many. */
export interface ReadMarks {
  /** A page was served: `cursor` is that of its last row. */
  served(after: string, page: { readonly rows: number; readonly cursor: string }): void
  rowsThrough(cursor: string): Promise<number>
}

export function openReadMarks(log: Log, stream: string): ReadMarks {
  /** Of the pages that were served last, oldest first. */
  const known = new Map<string, number>()

  function remember(cursor: string, rows: number) {
    known.delete(cursor)
    known.set(cursor, rows)
    const [oldest] = known.keys()
    if (known.size > COORDINATOR_LIMITS.readMarks && oldest !== undefined) known.delete(oldest)
  }

  /** A cursor from before a restart, or out of the middle of a page. */
  async function count(cursor: string): Promise<number> {
    let rows = 0
    for (let after: string | undefined; ; ) {
      const limit = COORDINATOR_LIMITS.readMarks
      const page = await readRows(log, stream, { limit, ...(after === undefined ? {} : { after }) })
      const at = page.rows.findIndex((row) => row.cursor === cursor)
      if (at >= 0) return rows + at + 1
      rows += page.rows.length
      if (page.rows.length === 0) return 0
      after = page.cursor
    }
  }

  return {
    served(after, { rows, cursor }) {
      const before = after === '' ? 0 : known.get(after)
      if (before !== undefined && rows > 0) remember(cursor, before + rows)
    },
    async rowsThrough(cursor) {
      const rows = known.get(cursor) ?? (await count(cursor))
      remember(cursor, rows)
      return rows
    },
  }
}
