import { checkBytes, checkInteger, checkName, checkPrefix } from '../argument.ts'
import type { Clock } from '../clock.ts'

import type {
  Kv,
  KvCallOptions,
  KvDeleteOptions,
  KvEntry,
  KvEvent,
  KvListing,
  KvListOptions,
  KvPutOptions,
  Revision,
} from '../kv.ts'
import { PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, TTL_MS_MAX, VALUE_BYTES_MAX } from '../limits.ts'
import type { Journal } from './journal.ts'
import { KvExpiry } from './kv-expiry.ts'
import { KvWatcher } from './kv-watcher.ts'
import type { KvRow } from './operation.ts'
import { parsePosition } from './position.ts'

export class SqliteKv implements Kv {
  readonly #journal: Journal
  readonly #clock: Clock
  readonly #closing: AbortSignal
  readonly #watchers = new Set<KvWatcher>()
  readonly #expiry: KvExpiry

  constructor(journal: Journal, clock: Clock, closing: AbortSignal) {
    this.#journal = journal
    this.#clock = clock
    this.#closing = closing
    this.#expiry = new KvExpiry({
      journal,
      clock,
      closing,
      expired: (key, revision) => this.#tell({ type: 'delete', key, revision, expired: true }),
    })
  }

  async get(key: string, { signal }: KvCallOptions = {}): Promise<KvEntry | undefined> {
    checkName('key', key)
    const request = { key, nowMs: this.#clock.now() }
    const { result, bytes } = await this.#journal.submit('kv.get', request, { signal })
    return result && asEntry(result, bytes[0])
  }

  async put(
    key: string,
    value: Uint8Array,
    options: KvPutOptions = {},
  ): Promise<{ revision: Revision }> {
    const { expect, ttlMs, signal } = options
    checkName('key', key)
    checkBytes('the value', value, VALUE_BYTES_MAX)
    if (ttlMs !== undefined) checkInteger('ttlMs', ttlMs, 1, TTL_MS_MAX)
    const nowMs = this.#clock.now()
    const expiresAtMs = ttlMs === undefined ? null : nowMs + ttlMs
    const committed = (revision: Revision) => {
      if (expiresAtMs !== null) this.#expiry.due(expiresAtMs)
      if (this.#watchers.size === 0) return
      this.#tell({
        type: 'put',
        entry: asEntry({ key, revision, expiresAtMs }, new Uint8Array(value)),
      })
    }
    const { result: revision } = await this.#journal.submit(
      'kv.put',
      {
        key,
        expiresAtMs,
        nowMs,
        ...(expect !== undefined && {
          expect: expect === 'absent' ? null : parsePosition('expect', expect),
        }),
      },
      { bytes: [value], signal, committed },
    )
    return { revision }
  }

  async delete(key: string, { expect, signal }: KvDeleteOptions = {}): Promise<boolean> {
    checkName('key', key)
    const request = {
      key,
      nowMs: this.#clock.now(),
      ...(expect !== undefined && { expect: parsePosition('expect', expect) }),
    }
    const committed = (revision: Revision | undefined) => {
      if (revision !== undefined) this.#tell({ type: 'delete', key, revision, expired: false })
    }
    const { result } = await this.#journal.submit('kv.delete', request, { signal, committed })
    return result !== undefined
  }

  async list(prefix: string, options: KvListOptions = {}): Promise<KvListing> {
    const { after, limit = PAGE_ITEMS_DEFAULT, signal } = options
    checkPrefix(prefix)
    checkInteger('limit', limit, 1, PAGE_ITEMS_MAX)
    const nowMs = this.#clock.now()
    const request = { prefix, limit, nowMs, ...(after !== undefined && { after }) }
    const { result, bytes } = await this.#journal.submit('kv.list', request, { signal })
    const entries = result.rows.map((row, index) => asEntry(row, bytes[index]))
    const last = entries.at(-1)
    return { entries, ...(result.more && last && { next: last.key }) }
  }

  async *watch(prefix: string, { signal }: KvCallOptions = {}): AsyncGenerator<KvEvent, never> {
    checkPrefix(prefix)
    const watcher = new KvWatcher(prefix)
    this.#watchers.add(watcher)
    try {
      let after: string | undefined
      do {
        const options = { ...(after !== undefined && { after }), ...(signal && { signal }) }
        const { entries, next } = await this.list(prefix, options)
        for (const entry of entries) watcher.found(entry)
        after = next
        yield* watcher.take()
      } while (after !== undefined)
      yield { type: 'current' }
      watcher.current()
      for (;;) {
        await watcher.news.wait([signal, this.#closing])
        yield* watcher.take()
      }
    } finally {
      this.#watchers.delete(watcher)
    }
  }

  #tell(event: Exclude<KvEvent, { type: 'current' }>): void {
    for (const watcher of this.#watchers) watcher.tell(event)
  }
}

function asEntry(row: KvRow, value: Uint8Array | undefined): KvEntry {
  const { key, revision, expiresAtMs } = row
  return {
    key,
    value: value ?? new Uint8Array(0),
    revision,
    ...(expiresAtMs !== null && { expiresAtMs }),
  }
}
