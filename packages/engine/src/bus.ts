/**
 * Messages between those that live now. Nothing is stored: what must survive is in log, queue or kv, and a message only says
 * that it is worth a look, or asks for an effect that can be asked for twice.
 *
 * - A **subject** is tokens of `[A-Za-z0-9_-]` joined by dots. In `subscribe`, the token `*` stands for any one token, and a
 *   last `>` for one or more.
 * - A request goes to one of those that serve its subject, in turn. It may be handled although the requester got an error, and
 *   may be handled twice: handlers are idempotent, or carry a fencing token.
 * - A published message goes to each present subscriber at most once.
 * - Payloads are at most 1 MiB. Neither side changes one after it was given away.
 */
export interface Bus {
  /**
   * Asks and waits for the reply. Errors: `no_responder`, `deadline_exceeded`, `handler_failed`, `too_large`.
   * An aborted request rejects with the signal's reason and may still be handled.
   */
  request(subject: string, payload: Uint8Array, options?: RequestOptions): Promise<Uint8Array>
  /** Serves a subject until disposed. Requests run side by side; the handler bounds itself. */
  serve(subject: string, handler: RequestHandler): Disposable
  /** Gives the message to everybody who subscribes at this moment. Nobody at all is fine. */
  publish(subject: string, payload: Uint8Array): void
  /**
   * Messages from this call on (not from the first `next`), until the signal aborts (rejects with its reason), the loop is left
   * or the engine closes (`closed`). A subscriber with more than 8,192 messages or 64 MiB waiting is cut off with
   * `slow_consumer`.
   */
  subscribe(pattern: string, options?: SubscribeOptions): AsyncIterableIterator<BusMessage>
}

export interface RequestOptions {
  /** Default 30 s. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Gives the reply. What it throws reaches the requester as `handler_failed` with the message alone. */
export type RequestHandler = (
  payload: Uint8Array,
  context: RequestContext,
) => Uint8Array | Promise<Uint8Array>

export interface RequestContext {
  readonly subject: string
  /** Aborts at the requester's deadline, and earlier where the transport learns that nobody waits any more. */
  readonly signal: AbortSignal
}

export interface SubscribeOptions {
  readonly signal?: AbortSignal
}

export interface BusMessage {
  readonly subject: string
  readonly payload: Uint8Array
}
