/**
 * Work that is handed out, each message to one holder at a time, at least once.
 *
 * ## A message's life
 * ```
 * put ─▶ delayed ─ its time ─▶ ready ─ lease ─▶ leased ─ ack ─▶ gone
 *          ▲                     ▲                 │
 *          └──── nack(delay) ────┴─ lease expires ─┘
 * ```
 * - Ready messages are leased by priority (higher first), then by age (earlier put first, however often it came back).
 * - Each lease has a **token**, larger than any earlier one of this queue. Hand it on with what the work writes, so that the
 *   writer can refuse an older holder.
 * - Only the latest holder may `extend`, `ack` or `nack`, also after its lease expired as long as nobody else got the message.
 * - A holder that dies says nothing: its lease expires and the message is ready again.
 *
 * A queue exists as soon as it is named. When `put` or `ack` resolves, it survives SIGKILL of any process.
 */
export interface Queue {
  /**
   * Adds a message of at most 256 KiB. Errors: `too_large`, `backlog_full`, `disk_full`.
   */
  put(queue: string, body: Uint8Array, options?: PutMessageOptions): Promise<QueuePut>
  /**
   * Takes up to `max` messages. Fewer come when fewer are ready or when they make up about 4 MiB; none at all gives an empty array, at once or, with `waitMs`,
   * after that time. Those who wait are served in the order of their calls. Aborting while it waits takes nothing, and counts as no delivery.
   */
  lease(queue: string, options: LeaseOptions): Promise<Lease[]>
  /** Makes the lease end `leaseMs` from now. Errors: `lease_lost`. */
  extend(lease: LeaseRef, leaseMs: number, options?: QueueCallOptions): Promise<void>
  /** Ends the message: done. Errors: `lease_lost`. */
  ack(lease: LeaseRef, options?: QueueCallOptions): Promise<void>
  /** Gives the message back, ready after `delayMs` (default 0). Errors: `lease_lost`. */
  nack(lease: LeaseRef, options?: NackOptions): Promise<void>
  /**
   * Removes all its messages, whoever holds them, with their keys: whatever is put under its name afterwards begins anew. Idempotent; one that
   * was killed meanwhile is done again.
   */
  delete(queue: string, options?: QueueCallOptions): Promise<void>
  /** Messages by state. */
  depth(queue: string, options?: QueueCallOptions): Promise<QueueDepth>
  /**
   * Messages that stand in queues whose names begin with `prefix`, whoever holds them, in the order in which they were put. Each page is one
   * moment's; what is put meanwhile comes on a later one. It reads past those of other queues, so it is for a look now and then.
   */
  list(prefix: string, options?: ListMessagesOptions): Promise<MessageListing>
}

export interface QueueCallOptions {
  readonly signal?: AbortSignal
}

export interface PutMessageOptions extends QueueCallOptions {
  /** A whole number from -1,000,000,000 to 1,000,000,000; higher is leased first. Default 0. */
  readonly priority?: number
  /** Not ready before this time has passed, at most 30 days. Default 0. */
  readonly delayMs?: number
  /**
   * At most 512 characters. While a message with this key stands in the queue, and for 10 minutes after its put in any case,
   * another put with the key adds nothing.
   */
  readonly dedup?: string
}

export interface ListMessagesOptions extends QueueCallOptions {
  /** Where the page before ended. Default: from the first. */
  readonly after?: string
  /** 1 to 10,000, default 1,000. A page may end early, at about 4 MiB. */
  readonly limit?: number
}

export interface MessageListing {
  readonly messages: readonly {
    readonly queue: string
    readonly id: string
    readonly body: Uint8Array
  }[]
  /** Absent on the last page. */
  readonly next?: string
}

export interface QueuePut {
  /** Opaque; of the message that stands where `duplicate` is true. */
  readonly id: string
  readonly duplicate: boolean
}

export interface LeaseOptions extends QueueCallOptions {
  /** 1 to 1,000. */
  readonly max: number
  /** How long the messages are this holder's, 1 ms to 24 h. */
  readonly leaseMs: number
  /** How long to wait for the first message. Default 0. */
  readonly waitMs?: number
}

/** What names a lease; it can be written down and used by another process. */
export interface LeaseRef {
  readonly queue: string
  readonly id: string
  readonly token: number
}

export interface Lease extends LeaseRef {
  readonly body: Uint8Array
  readonly priority: number
  /** How often the message was leased, this time included. */
  readonly deliveries: number
  /** By the engine's clock, milliseconds since the epoch. */
  readonly expiresAtMs: number
}

export interface NackOptions extends QueueCallOptions {
  readonly delayMs?: number
}

export interface QueueDepth {
  readonly ready: number
  readonly delayed: number
  readonly leased: number
}
