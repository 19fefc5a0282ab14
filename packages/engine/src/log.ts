/**
 * Append-only streams of records.
 *
 * ## Terms
 * - A **stream** comes into being with its first append and is named by `[A-Za-z0-9._/=:@-]`, 1 to 256 characters.
 * - A **position** is an opaque string. Within one stream, plain string comparison orders positions as the records were
 *   appended. Never compute with them, never compare those of two streams: gaps and any starting point are allowed.
 * - The **head** is the position of the last record ever appended; trimming does not move it.
 * - A **checkpoint** is a state that stands for all records up to its position.
 *
 * ## Use
 * A coordinator appends with `expect: <its last position>`, so that a second coordinator is refused; now and then it writes a
 * checkpoint and trims up to it; on start it loads the latest checkpoint and reads on from its position.
 * A result is appended with a `dedup` key, so that repeating the append after a crash adds nothing.
 *
 * ## Promises
 * - One append is one commit: all its records are there or none, in order, side by side.
 * - When `append` resolves, the records survive SIGKILL of any process.
 * - Appends that one caller makes in order, without awaiting, take effect in that order.
 * - A read never shows a gap: a cursor behind trimmed records is refused, not skipped ahead.
 * - A slow reader costs nobody anything: it holds no lock and no buffer.
 */
export interface Log {
  /**
   * Adds `records` (1 to 4096, together at most 256 KiB) at the end. Creates the stream where needed.
   *
   * Aborting before the commit started stores nothing; later the outcome is unknown, as with a crash.
   * Errors: `log_conflict` (nothing stored), `too_large`, `backlog_full`, `disk_full`.
   */
  append(stream: string, records: readonly Uint8Array[], options?: AppendOptions): Promise<Appended>
  /**
   * The records after the cursor, oldest first. An empty page means there are no more at present; a short page does not.
   * A stream that does not exist reads as empty. Errors: `log_trimmed`.
   */
  read(stream: string, options?: ReadOptions): Promise<LogRecord[]>
  /**
   * The records that stand under these `dedup` keys (1 to 1,000), in the order of the keys; undefined where none does, or does any
   * more. A page ends at about 4 MiB: ask again for the keys beyond its length.
   */
  find(
    stream: string,
    keys: readonly string[],
    options?: LogCallOptions,
  ): Promise<(LogRecord | undefined)[]>
  /**
   * The records after the cursor and then every new one, until the signal aborts (rejects with its reason), the loop is left,
   * or the engine closes (`closed`). Waits for a stream that does not exist yet. Errors: `log_trimmed`, and `not_found` when
   * the stream is deleted meanwhile.
   */
  tail(stream: string, options?: TailOptions): AsyncIterable<LogRecord>
  /** Position of the last record ever appended; undefined where the stream does not exist. */
  head(stream: string, options?: LogCallOptions): Promise<Position | undefined>
  /**
   * Replaces the checkpoint: `state` (at most 64 MiB) stands for all records up to `position`.
   * Errors: `log_conflict` where the present checkpoint is of a later position; `invalid_argument` beyond the head.
   */
  checkpoint(
    stream: string,
    position: Position,
    state: Uint8Array,
    options?: LogCallOptions,
  ): Promise<void>
  latestCheckpoint(stream: string, options?: LogCallOptions): Promise<Checkpoint | undefined>
  /**
   * Removes all records up to and including `upTo`, with their `dedup` keys. Idempotent. The caller sees to it that a
   * checkpoint, or nobody, needs them. Errors: `invalid_argument` beyond the head.
   */
  trim(stream: string, upTo: Position, options?: LogCallOptions): Promise<void>
  /** Streams whose names begin with `prefix`, in order of name. */
  list(prefix: string, options?: LogListOptions): Promise<LogListing>
  /** Removes the stream with all it has. A stream of the same name starts anew. False where there was none. */
  delete(stream: string, options?: LogCallOptions): Promise<boolean>
}

/** Opaque, ordered by string comparison within one stream. */
export type Position = string

export interface LogCallOptions {
  readonly signal?: AbortSignal
}

export interface AppendOptions extends LogCallOptions {
  /** Append only if this is the head; `'start'`: only if the stream has never had a record. Default: append anyhow. */
  readonly expect?: Position | 'start'
  /**
   * One key a record, at most 512 characters. A record whose key already stands in the stream (or earlier in this call) is
   * skipped and reported. `expect` is checked first.
   */
  readonly dedup?: readonly string[]
}

export interface Appended {
  /** The stream's head after this append: that of its last record, unless all were skipped. Right for the next `expect`. */
  readonly position: Position
  /** Skipped records, by their index in the call, with the position at which the key stands. */
  readonly duplicates: readonly Duplicate[]
}

export interface Duplicate {
  readonly index: number
  readonly position: Position
}

export interface ReadOptions extends LogCallOptions {
  /** Exclusive cursor. Default: from the oldest record that is still there. */
  readonly after?: Position
  /** At most this many records, 1 to 10,000; default 1,000. A page also ends at about 4 MiB. */
  readonly limit?: number
}

export interface TailOptions extends LogCallOptions {
  /** Exclusive cursor. Default: from the oldest record that is still there. */
  readonly after?: Position
}

export interface LogRecord {
  readonly position: Position
  readonly bytes: Uint8Array
}

export interface Checkpoint {
  readonly position: Position
  readonly state: Uint8Array
}

export interface LogListOptions extends LogCallOptions {
  /** Exclusive cursor: a name, usually the previous page's `next`. */
  readonly after?: string
  /** 1 to 10,000; default 1,000. */
  readonly limit?: number
}

export interface LogListing {
  readonly streams: readonly StreamInfo[]
  /** Cursor of the next page; absent on the last. */
  readonly next?: string
}

export interface StreamInfo {
  readonly name: string
  readonly head: Position
}
