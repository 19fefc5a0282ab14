import { addReading, nothingRead, type ReadingTotals } from '@sandlot/core'

/** What the readers of one stream of a run do: whether they wait for results, or results for them. */
export interface ReaderWatch {
  /** A reader asks for what comes after the cursor, and waits. */
  asks(after: string, nowMs: number): AskedPage
  /** What the run has not been told of yet. */
  untold(nowMs: number): ReadingTotals
  /** It is worth an event. */
  isDue(nowMs: number): boolean
  /** The same as `untold`; the run knows it from now on. Undefined where it is worth none by now. */
  take(nowMs: number): ReadingTotals | undefined
}

export interface AskedPage {
  /** So many are served, the last with this cursor. Not called where the reader is gone. */
  served(page: { readonly records: number; readonly cursor: string }): void
  /** It waits no more. */
  over(nowMs: number): void
}

/** Less than this, and what readers did is told with what they do next. */
const TOLD_MS = 1_000

export function openReaderWatch(): ReaderWatch {
  let told = nothingRead()
  let waiting = 0
  /** Since when somebody waits, or nobody does. */
  let sinceMs: number | undefined
  /** Whoever reads again what was read before takes nothing. */
  let furthest = ''

  function passing(nowMs: number): ReadingTotals {
    const reading = { ...told }
    if (sinceMs !== undefined && waiting > 0) reading.waitedMs += Math.max(0, nowMs - sinceMs)
    return reading
  }

  return {
    asks(after, nowMs) {
      // A reader that never comes again was not busy with what it has.
      if (waiting === 0 && sinceMs !== undefined) told.busyMs += Math.max(0, nowMs - sinceMs)
      if (waiting++ === 0) sinceMs = nowMs
      return {
        served({ records, cursor }) {
          if (records === 0 || after < furthest) return
          furthest = cursor
          addReading(told, { ...nothingRead(), taken: records, pages: 1 })
        },
        over(at) {
          if (--waiting > 0) return
          told.waitedMs += Math.max(0, at - (sinceMs ?? at))
          sinceMs = at
        },
      }
    },
    untold: passing,
    isDue: (nowMs) => isWorthTelling(passing(nowMs)),
    take(nowMs) {
      const reading = passing(nowMs)
      if (!isWorthTelling(reading)) return undefined
      told = nothingRead()
      if (waiting > 0) sinceMs = nowMs
      return reading
    },
  }
}

function isWorthTelling({ waitedMs, busyMs }: ReadingTotals): boolean {
  return waitedMs + busyMs >= TOLD_MS
}
