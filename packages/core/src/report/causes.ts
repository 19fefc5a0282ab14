import type { Outcome } from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'

/** How often attempts or episodes ended for one cause. */
export interface CauseCount {
  /** null: given up without a fault of its own. */
  readonly outcome: Outcome | null
  /** The episode was tried again; otherwise it ended so. */
  readonly retried: boolean
  /** As it was said the first time. */
  readonly cause: string
  count: number
  /** Key of the first episode that it met. */
  readonly example: string
}

export interface Caused {
  readonly outcome: Outcome | null
  readonly retried: boolean
  /** From the outside in. */
  readonly cause: readonly string[]
  readonly key: string
}

/** Counts a cause. Where there are too many different ones the rarest gives way: a frequent one is never missed for long. */
export function countCause(causes: CauseCount[], { outcome, retried, cause, key }: Caused): void {
  if (cause.length === 0) return
  const text = textOf(cause)
  const print = printOf(text)
  const known = causes.find(
    (each) =>
      each.outcome === outcome &&
      each.retried === retried &&
      (each.cause === text || printOf(each.cause) === print),
  )
  if (known) {
    known.count++
    return
  }
  if (causes.length >= CORE_LIMITS.causesKept) causes.splice(rarestOf(causes), 1)
  causes.push({ outcome, retried, cause: text, count: 1, example: key })
}

/** The most frequent first; of equals the earliest. */
export function topCauses(causes: readonly CauseCount[]): CauseCount[] {
  return [...causes]
    .sort((a, b) => b.count - a.count)
    .slice(0, CORE_LIMITS.causesReported)
    .map((each) => ({ ...each }))
}

function textOf(cause: readonly string[]): string {
  const text = cause.slice(0, 2).join(': ').replace(/\s+/g, ' ').trim()
  return text.slice(0, CORE_LIMITS.causeShown)
}

/** What is the same of two causes that differ in ids, digests and numbers alone. */
function printOf(text: string): string {
  return text.replace(/\b[a-z]{2}_[a-z0-9]{8,}\b|\b[0-9a-f]{12,}\b|\d+/g, '#')
}

function rarestOf(causes: readonly CauseCount[]): number {
  let at = 0
  for (const [index, { count }] of causes.entries()) {
    if (count < (causes[at]?.count ?? 0)) at = index
  }
  return at
}
