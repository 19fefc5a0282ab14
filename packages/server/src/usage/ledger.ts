import type { Clock, Engine, Position } from '@sandlot/engine'
import { z } from 'zod'
import { decodeJson, encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { type BookLine, DAY_MS, DayBook } from './day-book.ts'
import { cutStretch, type MeteredStretch, meteredStretch } from './metered.ts'

const PREFIX = 'usage/'

/** What came together; in the oldest records a stretch by itself. */
const record = z.union([z.array(meteredStretch), meteredStretch.transform((stretch) => [stretch])])

interface OpenBook {
  readonly book: DayBook
  /** Keys that were read: what a daemon recorded before it was killed may come again, and only that. */
  readonly known: ReadonlySet<string>
  /** Stretches since the last checkpoint, and where that is: they are kept for one checkpoint more, so that they are known. */
  uncounted: number
  checkpoint: Position | undefined
}

interface Waiting {
  readonly stretch: MeteredStretch
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/**
 * What was metered, durably: a stream of the log for each day (UTC) in which a stretch began, and in memory the sums of the days that
 * are written to. Whoever records sees to it that a stretch comes once in a daemon's life; one that comes again after a kill is known.
 */
export class Ledger {
  readonly #engine: Pick<Engine, 'log'>
  readonly #clock: Clock
  readonly #retainMs: number
  readonly #books = new Map<string, Promise<OpenBook>>()
  #waiting: Waiting[] = []
  #soon: (() => void) | undefined
  /** The appends and checkpoints of one stream must not overtake one another: a checkpoint stands for all before it. */
  #last: Promise<unknown> = Promise.resolve()

  /** `retainMs`: how long a day is told of; at the most a day longer. Default: `SERVER_LIMITS.usageMs`. */
  constructor(
    engine: Pick<Engine, 'log'>,
    clock: Clock,
    { retainMs = SERVER_LIMITS.usageMs }: { readonly retainMs?: number | undefined } = {},
  ) {
    this.#engine = engine
    this.#clock = clock
    this.#retainMs = retainMs
  }

  /** Resolves once it survives a SIGKILL. Whatever comes together is one commit. */
  record(stretch: MeteredStretch): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ stretch, done: resolve, failed: reject })
    void this.flush()
    return promise
  }

  /** The same, with all that comes shortly after it: for what is written down elsewhere meanwhile. */
  recordSoon(stretch: MeteredStretch, failed: (error: unknown) => void): void {
    this.#waiting.push({ stretch, done: () => {}, failed })
    this.#soon ??= this.#clock.after(SERVER_LIMITS.usageWaitsMs, () => void this.flush())
  }

  /** What waits is recorded, or has failed. */
  async flush(): Promise<void> {
    this.#soon?.()
    this.#soon = undefined
    await this.#alone(async () => {
      while (this.#waiting.length > 0) {
        const some = this.#waiting.splice(0, STRETCHES_PER_RECORD)
        try {
          await this.#append(some.map(({ stretch }) => stretch))
          for (const { done } of some) done()
        } catch (error) {
          for (const { failed } of some) failed(error)
        }
      }
    })
  }

  /** All that is recorded of these hours. */
  async lines(fromMs: number, toMs: number): Promise<BookLine[]> {
    await this.flush()
    const found: BookLine[] = []
    for (const stream of await this.#days(fromMs, toMs)) {
      const { book } = await this.#open(stream, 'look')
      for (const line of book.lines()) {
        if (line.hourMs >= fromMs && line.hourMs < toMs) found.push(line)
      }
    }
    return found
  }

  /** Forgets the days that nobody is told of any more, and writes the last sums of those that are over. */
  async tidy(): Promise<void> {
    const { log } = this.#engine
    const nowMs = this.#clock.now()
    const oldest = streamOf(nowMs - this.#retainMs)
    for (const { name } of (await log.list(PREFIX, { limit: 100 })).streams) {
      if (name < oldest) await log.delete(name)
    }
    const yesterday = streamOf(nowMs - DAY_MS)
    for (const [stream, opening] of [...this.#books]) {
      if (stream >= yesterday) continue
      await this.#alone(async () => {
        this.#books.delete(stream)
        const head = await log.head(stream)
        if (head !== undefined) await this.#checkpoint(stream, await opening, head)
      })
    }
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }

  async #append(stretches: readonly MeteredStretch[]): Promise<void> {
    const byDay = new Map<string, MeteredStretch[]>()
    for (const stretch of stretches) {
      for (const part of cutStretch(stretch, DAY_MS)) {
        const stream = streamOf(part.fromMs)
        const parts = byDay.get(stream)
        if (parts) parts.push(part)
        else byDay.set(stream, [part])
      }
    }
    for (const [stream, parts] of byDay) await this.#appendTo(stream, parts)
  }

  async #appendTo(stream: string, all: readonly MeteredStretch[]): Promise<void> {
    const open = await this.#open(stream, 'keep')
    const parts = all.filter(({ key }) => !open.known.has(key))
    if (parts.length === 0) return
    const { position } = await this.#engine.log.append(stream, [encodeJson(parts)])
    for (const part of parts) open.book.add(part)
    open.uncounted += parts.length
    if (open.uncounted >= SERVER_LIMITS.usageUncounted) {
      await this.#checkpoint(stream, open, position)
    }
  }

  async #checkpoint(stream: string, open: OpenBook, position: Position): Promise<void> {
    const { log } = this.#engine
    const before = open.checkpoint
    await log.checkpoint(stream, position, encodeJson(open.book.save()))
    open.checkpoint = position
    open.uncounted = 0
    if (before !== undefined && before !== position) await log.trim(stream, before)
  }

  /** A day that is only looked at is read each time: there are many. */
  async #open(stream: string, how: 'look' | 'keep'): Promise<OpenBook> {
    const present = this.#books.get(stream)
    if (present || how === 'look') return await (present ?? this.#read(stream))
    const opening = this.#read(stream)
    this.#books.set(stream, opening)
    opening.catch(() => this.#books.delete(stream))
    return await opening
  }

  async #read(stream: string): Promise<OpenBook> {
    const { log } = this.#engine
    const checkpoint = await log.latestCheckpoint(stream)
    const book = checkpoint ? DayBook.load(decodeJson(checkpoint.state)) : new DayBook()
    const known = new Set<string>()
    let uncounted = 0
    for (let after: Position | undefined; ; ) {
      const page = await log.read(stream, after === undefined ? {} : { after })
      for (const { position, bytes } of page) {
        const stretches = record.parse(decodeJson(bytes))
        const counted = checkpoint !== undefined && position <= checkpoint.position
        for (const stretch of stretches) {
          known.add(stretch.key)
          if (counted) continue
          book.add(stretch)
          uncounted++
        }
      }
      after = page.at(-1)?.position
      if (after === undefined) return { book, known, uncounted, checkpoint: checkpoint?.position }
    }
  }

  async #days(fromMs: number, toMs: number): Promise<string[]> {
    const days: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await this.#engine.log.list(PREFIX, after === undefined ? {} : { after })
      days.push(...page.streams.map(({ name }) => name))
      after = page.next
      if (after === undefined) break
    }
    const [first, last] = [streamOf(fromMs), streamOf(toMs)]
    return days.filter((day) => day >= first && day <= last)
  }
}

/** Together they stay below the size of an append. */
const STRETCHES_PER_RECORD = 256

function streamOf(atMs: number): string {
  return PREFIX + new Date(atMs).toISOString().slice(0, 10)
}
