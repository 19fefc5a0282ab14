import {
  checkBytes,
  checkDedupKey,
  checkInteger,
  checkName,
  checkPrefix,
  checkSize,
  invalid,
} from '../argument.ts'
import { EngineError } from '../error.ts'
import {
  APPEND_BYTES_MAX,
  APPEND_RECORDS_MAX,
  CHECKPOINT_BYTES_MAX,
  FIND_KEYS_MAX,
  PAGE_ITEMS_DEFAULT,
  PAGE_ITEMS_MAX,
} from '../limits.ts'
import type {
  Appended,
  AppendOptions,
  Checkpoint,
  Log,
  LogCallOptions,
  LogListing,
  LogListOptions,
  LogRecord,
  Position,
  ReadOptions,
  TailOptions,
} from '../log.ts'
import type { Journal } from './journal.ts'
import { LogTails } from './log-tails.ts'
import { parsePosition } from './position.ts'

export class SqliteLog implements Log {
  readonly #journal: Journal
  readonly #closing: AbortSignal
  readonly #tails = new LogTails()
  #sweeping = false

  /** `closing` aborts, with the error for those who wait, when the engine closes. */
  constructor(journal: Journal, closing: AbortSignal) {
    this.#journal = journal
    this.#closing = closing
    this.#sweep()
  }

  async append(
    stream: string,
    records: readonly Uint8Array[],
    options: AppendOptions = {},
  ): Promise<Appended> {
    const { expect, dedup, signal } = options
    checkAppend(stream, records, dedup)
    const { result } = await this.#journal.submit(
      'log.append',
      {
        stream,
        ...(expect !== undefined && {
          expect: expect === 'start' ? 0 : parsePosition('expect', expect),
        }),
        ...(dedup && { dedup }),
      },
      { bytes: records, signal, committed: () => this.#tails.wake(stream) },
    )
    return result
  }

  async read(stream: string, options: ReadOptions = {}): Promise<LogRecord[]> {
    const { after, limit = PAGE_ITEMS_DEFAULT, signal } = options
    checkName('stream', stream)
    checkInteger('limit', limit, 1, PAGE_ITEMS_MAX)
    const request = {
      stream,
      limit,
      ...(after !== undefined && { after: parsePosition('after', after) }),
    }
    const { result, bytes } = await this.#journal.submit('log.read', request, { signal })
    return result.map((position, index) => ({ position, bytes: bytes[index] ?? NO_BYTES }))
  }

  async find(
    stream: string,
    keys: readonly string[],
    { signal }: LogCallOptions = {},
  ): Promise<(LogRecord | undefined)[]> {
    checkName('stream', stream)
    checkInteger('the number of keys', keys.length, 1, FIND_KEYS_MAX)
    for (const key of keys) checkDedupKey(key)
    const { result, bytes } = await this.#journal.submit('log.find', { stream, keys }, { signal })
    let found = 0
    return result.map((position) =>
      position === null ? undefined : { position, bytes: bytes[found++] ?? NO_BYTES },
    )
  }

  async *tail(stream: string, options: TailOptions = {}): AsyncGenerator<LogRecord, never> {
    const { signal } = options
    checkName('stream', stream)
    const tail = this.#tails.add(stream)
    try {
      let after = options.after
      for (;;) {
        tail.news.reset()
        const page = await this.read(stream, {
          ...(after !== undefined && { after }),
          ...(signal && { signal }),
        })
        if (tail.deleted) throw new EngineError('not_found', `stream ${stream} was deleted`)
        for (const record of page) {
          yield record
          after = record.position
        }
        if (page.length === 0) await tail.news.wait([signal, this.#closing])
      }
    } finally {
      this.#tails.remove(stream, tail)
    }
  }

  async head(stream: string, { signal }: LogCallOptions = {}): Promise<Position | undefined> {
    checkName('stream', stream)
    return (await this.#journal.submit('log.head', { stream }, { signal })).result
  }

  async checkpoint(
    stream: string,
    position: Position,
    state: Uint8Array,
    { signal }: LogCallOptions = {},
  ): Promise<void> {
    checkName('stream', stream)
    checkBytes('state', state, CHECKPOINT_BYTES_MAX)
    const request = { stream, position: parsePosition('position', position) }
    await this.#journal.submit('log.checkpoint', request, { bytes: [state], signal })
  }

  async latestCheckpoint(
    stream: string,
    { signal }: LogCallOptions = {},
  ): Promise<Checkpoint | undefined> {
    checkName('stream', stream)
    const { result, bytes } = await this.#journal.submit(
      'log.latestCheckpoint',
      { stream },
      { signal },
    )
    return result === undefined ? undefined : { position: result, state: bytes[0] ?? NO_BYTES }
  }

  async trim(stream: string, upTo: Position, { signal }: LogCallOptions = {}): Promise<void> {
    checkName('stream', stream)
    const request = { stream, upTo: parsePosition('upTo', upTo) }
    while ((await this.#journal.submit('log.trim', request, { signal })).result);
  }

  async list(prefix: string, options: LogListOptions = {}): Promise<LogListing> {
    const { after, limit = PAGE_ITEMS_DEFAULT, signal } = options
    checkPrefix(prefix)
    checkInteger('limit', limit, 1, PAGE_ITEMS_MAX)
    const request = { prefix, limit: limit + 1, ...(after !== undefined && { after }) }
    const { result } = await this.#journal.submit('log.list', request, { signal })
    const streams = result.slice(0, limit)
    const last = streams.at(-1)
    return { streams, ...(result.length > limit && last && { next: last.name }) }
  }

  async delete(stream: string, { signal }: LogCallOptions = {}): Promise<boolean> {
    checkName('stream', stream)
    const committed = (deleted: boolean) => {
      if (!deleted) return
      this.#tails.delete(stream)
      this.#sweep()
    }
    return (await this.#journal.submit('log.delete', { stream }, { signal, committed })).result
  }

  /**
   * Removes what deleted streams left and gives its pages back to the disk, step by step between the work of others. What a failure leaves over is taken up by the
   * next deletion or start.
   */
  #sweep(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    const step = () => {
      const committed = (more: boolean) => (more ? step() : reclaim())
      this.#journal.submit('log.sweep', {}, { committed }).catch(over)
    }
    const reclaim = () => {
      const committed = (more: boolean) => (more ? reclaim() : over())
      this.#journal.submit('storage.reclaim', {}, { committed }).catch(over)
    }
    const over = () => {
      this.#sweeping = false
    }
    step()
  }
}

const NO_BYTES = new Uint8Array(0)

function checkAppend(
  stream: string,
  records: readonly Uint8Array[],
  dedup: readonly string[] | undefined,
): void {
  checkName('stream', stream)
  checkInteger('records', records.length, 1, APPEND_RECORDS_MAX)
  let sizeBytes = 0
  for (const record of records) {
    checkBytes('a record', record, APPEND_BYTES_MAX)
    sizeBytes += record.byteLength
  }
  checkSize('the append', sizeBytes, APPEND_BYTES_MAX)
  if (dedup === undefined) return
  if (dedup.length !== records.length) throw invalid('dedup', 'must have one key a record')
  for (const key of dedup) checkDedupKey(key)
}
