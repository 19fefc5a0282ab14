/** What the readers of a run's results have done, of rows or of groups. */
export interface ReadingTotals {
  /** Somebody waited for more. */
  waitedMs: number
  /** Nobody did: the reader had some in its hands, and came again. */
  busyMs: number
  /** Rows or groups that were given for the first time, and in how many pages. */
  taken: number
  pages: number
}

export const READ = ['rows', 'groups'] as const
export type Read = (typeof READ)[number]
export type Reading = Readonly<Record<Read, Readonly<ReadingTotals>>>

export function noReading(): Record<Read, ReadingTotals> {
  return { rows: nothingRead(), groups: nothingRead() }
}

export function nothingRead(): ReadingTotals {
  return { waitedMs: 0, busyMs: 0, taken: 0, pages: 0 }
}

export function addReading(to: ReadingTotals, more: Readonly<ReadingTotals>): void {
  to.waitedMs += more.waitedMs
  to.busyMs += more.busyMs
  to.taken += more.taken
  to.pages += more.pages
}
