import type { Clock, Engine, Position } from '@sandlot/engine'
import { decodeJson, encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { type BookLine, DAY_MS, DayBook } from './day-book.ts'
import { cutStretch, type MeteredStretch, meteredStretch } from './metered.ts'

const PREFIX = 'usage/'

interface OpenBook {
  readonly book: DayBook
  /** Records since the last checkpoint, and where that is: a record is kept for one checkpoint more, so that it is known when it comes again. */
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
 * are written to. A stretch that is recorded again, by a daemon that was killed before it knew, is known by its key.
 */
export class Ledger {
  readonly #engine: Pick<Engine, 'log'>
  readonly #clock: Pick<Clock, 'now'>
  readonly #books = new Map<string, Promise<OpenBook>>()
  #waiting: Waiting[] = []
  #flushing = false
  /** The appends and checkpoints of one stream must not overtake one another: a checkpoint stands for all before it. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(engine: Pick<Engine, 'log'>, clock: Pick<Clock, 'now'>) {
    this.#engine = engine
    this.#clock = clock
  }

  /** Resolves once it survives a SIGKILL. Whatever comes together is one commit. */
  record(stretch: MeteredStretch): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ stretch, done: resolve, failed: reject })
    if (!this.#flushing) {
      this.#flushing = true
      queueMicrotask(() => void this.#flush())
    }
    return promise
  }

  /** All that is recorded of these hours. */
  async lines(fromMs: number, toMs: number): Promise<BookLine[]> {
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
    const oldest = streamOf(nowMs - SERVER_LIMITS.usageDays * DAY_MS)
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

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, RECORDS_PER_APPEND)
      try {
        await this.#alone(() => this.#append(batch.map(({ stretch }) => stretch)))
        for (const { done } of batch) done()
      } catch (error) {
        for (const { failed } of batch) failed(error)
      }
    }
    this.#flushing = false
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }

  async #append(stretches: readonly MeteredStretch[]): Promise<void> {
    const byDay = new Map<string, MeteredStretch[]>()
    for (const part of stretches.flatMap((stretch) => cutStretch(stretch, DAY_MS))) {
      const stream = streamOf(part.fromMs)
      const parts = byDay.get(stream)
      if (parts) parts.push(part)
      else byDay.set(stream, [part])
    }
    for (const [stream, parts] of byDay) await this.#appendTo(stream, parts)
  }

  async #appendTo(stream: string, parts: readonly MeteredStretch[]): Promise<void> {
    const open = await this.#open(stream, 'keep')
    const { position, duplicates } = await this.#engine.log.append(
      stream,
      parts.map((part) => encodeJson(part)),
      { dedup: parts.map(({ key }) => key) },
    )
    const known = new Set(duplicates.map(({ index }) => index))
    for (const [index, part] of parts.entries()) if (!known.has(index)) open.book.add(part)
    open.uncounted += parts.length - known.size
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
    let after = checkpoint?.position
    let uncounted = 0
    for (;;) {
      const page = await log.read(stream, after === undefined ? {} : { after })
      for (const { bytes } of page) book.add(meteredStretch.parse(decodeJson(bytes)))
      uncounted += page.length
      after = page.at(-1)?.position ?? after
      if (page.length === 0) return { book, uncounted, checkpoint: checkpoint?.position }
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
const RECORDS_PER_APPEND = 256

function streamOf(atMs: number): string {
  return PREFIX + new Date(atMs).toISOString().slice(0, 10)
}
