/** Every limit of the engine. Quantities carry their unit; counts are plain. */

/** Names of streams, queues, keys and pins: `[A-Za-z0-9._/=:@-]`, the first a letter or digit. */
export const NAME_LENGTH_MAX = 256
/** Deduplication keys: any well-formed text. */
export const DEDUP_KEY_LENGTH_MAX = 512

/** All records of one append together: what every implementation can commit as one message. */
export const APPEND_BYTES_MAX = 256 * 1024
export const APPEND_RECORDS_MAX = 4096
export const CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024
export const MESSAGE_BYTES_MAX = 256 * 1024
export const VALUE_BYTES_MAX = 256 * 1024
export const BUS_BYTES_MAX = 1024 * 1024

/** Records, entries or names of one page, and the default when the caller names no limit. */
export const PAGE_ITEMS_MAX = 10_000
export const PAGE_ITEMS_DEFAULT = 1_000
/** Keys that are looked up in one call. */
export const FIND_KEYS_MAX = 1_000
/** A page ends early once it holds this much. */
export const PAGE_BYTES_MAX = 4 * 1024 * 1024

export const LEASE_MESSAGES_MAX = 1_000
export const LEASE_MS_MAX = 24 * 60 * 60 * 1000
export const DELAY_MS_MAX = 30 * 24 * 60 * 60 * 1000
export const TTL_MS_MAX = 366 * 24 * 60 * 60 * 1000
/** How long a queue remembers a deduplication key after the put, at the least. */
export const QUEUE_DEDUP_MS = 10 * 60 * 1000

/** Chunks of a blob that is read or written. */
export const BLOB_CHUNK_BYTES = 256 * 1024
/** How long an unpinned blob is left alone by default, so that a fresh one can be pinned. */
export const BLOB_GRACE_MS = 60 * 60 * 1000

/** Messages and bytes that wait for one subscriber before it is cut off. */
export const SUBSCRIBER_MESSAGES_MAX = 8_192
export const SUBSCRIBER_BYTES_MAX = 64 * 1024 * 1024
export const REQUEST_MS_DEFAULT = 30_000
export const TIMEOUT_MS_MAX = 24 * 60 * 60 * 1000

/** Operations and bytes that wait for the storage thread before a call is refused with `backlog_full`. */
export const BACKLOG_OPERATIONS_MAX = 131_072
export const BACKLOG_BYTES_MAX = 256 * 1024 * 1024
/** Operations and bytes of one transaction. */
export const TRANSACTION_OPERATIONS_MAX = 4_096
export const TRANSACTION_BYTES_MAX = 16 * 1024 * 1024
/** Rows that one step of a trim, a deletion or an expiry removes, so that other work gets its turn. */
export const SWEEP_ROWS_MAX = 5_000
/** Freed pages that are given back to the disk: from so many and this share of all on, so many a step. A page has 4 KiB. */
export const RECLAIM_PAGES_MIN = 4_096
export const RECLAIM_SHARE = 0.25
export const RECLAIM_PAGES_STEP = 2_048
