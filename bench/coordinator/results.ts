import type { Coordinator } from '../inside.ts'

/** Reads a run to its end. */
export async function countResults(ours: Coordinator, run: string): Promise<number> {
  let after: string | undefined
  for (let count = 0; ; ) {
    const query = { limit: 1_000, waitMs: 1_000, ...(after ? { after } : {}) }
    const page = await ours.getResults('default', run, query)
    count += page.rows.length
    after = page.cursor
    if (page.done) return count
  }
}
