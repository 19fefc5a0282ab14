/**
 * Small values by key, with compare-and-set, watch and time to live.
 *
 * - A **key** is `[A-Za-z0-9._/=:@-]`, 1 to 256 characters, ordered bytewise.
 * - A **revision** is an opaque string, given anew by every put and delete; of one key, string comparison orders revisions by
 *   time. A key that was deleted and put again never has an old revision.
 * - An entry whose time to live is over is absent from that instant on.
 *
 * When a put or delete resolves, it survives SIGKILL of any process. Everybody sees the puts of one key in one order.
 */
export interface Kv {
  get(key: string, options?: KvCallOptions): Promise<KvEntry | undefined>
  /**
   * Stores `value` (at most 256 KiB). Without `ttlMs` the entry stays until it is deleted, whatever it had before.
   * Errors: `kv_conflict`, `too_large`, `backlog_full`, `disk_full`.
   */
  put(
    key: string,
    value: Uint8Array,
    options?: KvPutOptions,
  ): Promise<{ readonly revision: Revision }>
  /** False where there was no such key. Errors: `kv_conflict`. */
  delete(key: string, options?: KvDeleteOptions): Promise<boolean>
  /** Entries whose keys begin with `prefix`, in order of key. */
  list(prefix: string, options?: KvListOptions): Promise<KvListing>
  /**
   * First a put for each entry that is there, then `current` once, then each change, until the signal aborts (rejects with its
   * reason), the loop is left or the engine closes (`closed`). A watcher that is slower than the changes may miss what lies
   * between: the last state of each key always arrives, and of one key nothing arrives out of order.
   */
  watch(prefix: string, options?: KvCallOptions): AsyncIterable<KvEvent>
}

/** Opaque; ordered by string comparison for one key. */
export type Revision = string

export interface KvCallOptions {
  readonly signal?: AbortSignal
}

export interface KvEntry {
  readonly key: string
  readonly value: Uint8Array
  readonly revision: Revision
  /** By the engine's clock, milliseconds since the epoch; absent where the entry does not expire. */
  readonly expiresAtMs?: number
}

export interface KvPutOptions extends KvCallOptions {
  /** Put only if the key has this revision; `'absent'`: only if there is none. Default: put anyhow. */
  readonly expect?: Revision | 'absent'
  /** 1 ms to 366 days. */
  readonly ttlMs?: number
}

export interface KvDeleteOptions extends KvCallOptions {
  /** Delete only if the key has this revision. */
  readonly expect?: Revision
}

export interface KvListOptions extends KvCallOptions {
  /** Exclusive cursor: a key, usually the previous page's `next`. */
  readonly after?: string
  /** 1 to 10,000; default 1,000. A page also ends at about 4 MiB. */
  readonly limit?: number
}

export interface KvListing {
  readonly entries: readonly KvEntry[]
  /** Cursor of the next page; absent on the last. */
  readonly next?: string
}

export type KvEvent =
  | { readonly type: 'put'; readonly entry: KvEntry }
  | {
      readonly type: 'delete'
      readonly key: string
      readonly revision: Revision
      /** Its time to live was over, nobody deleted it. */
      readonly expired: boolean
    }
  /** All entries that were there at the start have been seen. */
  | { readonly type: 'current' }
