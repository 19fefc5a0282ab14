/** The stretches of one day, summed by hour, project and run. */
import { z } from 'zod'
import {
  addSum,
  cutStretch,
  type MeteredStretch,
  type MeteredSum,
  meteredStretch,
  noSum,
} from './metered.ts'

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** One line: what of an hour went to the same purpose. */
export interface BookLine {
  readonly hourMs: number
  readonly project: string
  readonly kind: MeteredStretch['kind']
  readonly run: string | null
  readonly retry: boolean
  readonly sum: MeteredSum
}

const sums = meteredStretch.omit({
  ...{ key: true, fromMs: true, toMs: true, project: true, kind: true, run: true, retry: true },
})
const bookState = z.array(
  meteredStretch.pick({ project: true, kind: true, run: true, retry: true }).extend({
    hourMs: z.number(),
    sum: sums,
  }),
)

export class DayBook {
  readonly #lines = new Map<string, BookLine>()

  /** What `save` gave. */
  static load(saved: unknown): DayBook {
    const book = new DayBook()
    for (const line of bookState.parse(saved)) book.#lines.set(keyOf(line), line)
    return book
  }

  add(stretch: MeteredStretch): void {
    for (const part of cutStretch(stretch, HOUR_MS)) {
      const { project, kind, run, retry } = part
      const hourMs = Math.floor(part.fromMs / HOUR_MS) * HOUR_MS
      const of = { hourMs, project, kind, run, retry }
      const line = this.#lines.get(keyOf(of)) ?? { ...of, sum: noSum() }
      addSum(line.sum, part)
      this.#lines.set(keyOf(of), line)
    }
  }

  lines(): IterableIterator<BookLine> {
    return this.#lines.values()
  }

  save(): unknown {
    return [...this.#lines.values()]
  }
}

function keyOf({ hourMs, project, kind, run, retry }: Omit<BookLine, 'sum'>): string {
  // Neither projects nor runs have spaces in their names.
  return `${hourMs} ${project} ${kind} ${run ?? ''} ${retry}`
}
