import type { ChannelChunk } from './inbox.ts'
import type { PayloadMap } from './payload.ts'
import type { StreamFailure } from './stream-error.ts'

/** Channels of a stream: 0 … 3. Data on another one is malformed. */
export const CHANNELS = 4

export interface ReadOptions {
  /** Bytes the peer may have under way on each channel. Default and least: 262,144. */
  readonly window?: number
}

/** One request of a `Mux`, seen from either end: the **opener** asks, the **acceptor** answers. */
export interface MuxStream {
  readonly id: number

  /**
   * Opener: the peer's `result`; rejects with `RemoteError` (its `error`), `ConnectionLost`, or the reason of an `abort`.
   * Acceptor: its own answer, once that is handed to the transport; rejects with `ConnectionLost`, or `RemoteError` after
   * `fail`. Nobody needs to listen.
   */
  readonly done: Promise<PayloadMap>

  /** Aborted when the opener cancels (reason `StreamCancelled`, seen by the acceptor) or the connection is lost. */
  readonly signal: AbortSignal

  /**
   * News of the request from the peer, called as they come: before any data that was sent after them can be read. Unset:
   * dropped. What it throws ends the stream.
   */
  onEvent?: ((event: PayloadMap) => void) | undefined

  /**
   * Sends bytes on a channel; resolves when credit and the transport let the last of them go, so awaiting it is the
   * back-pressure. The bytes must not change until then. Rejects when the stream is over: `StreamOver`, `StreamCancelled`,
   * `ConnectionLost`, `RemoteError`. At most 1,024 wait at a time on a channel.
   */
  send(channel: number, bytes: Uint8Array): Promise<void>

  /** No more data on the channel, behind what was sent. Idempotent. */
  end(channel: number): void

  /** News for the peer. They go ahead of data that waits. Throws `PayloadTooLarge`. */
  event(map: PayloadMap): void

  /** Acceptor: the request succeeded; goes behind all that was sent. Throws `PayloadTooLarge`, then nothing was answered. */
  result(map: PayloadMap): void

  /** Acceptor: it failed; data that waits is dropped. After an answer it does nothing. */
  fail(failure: StreamFailure): void

  /**
   * Opener: asks the peer to stop; `done` and the readers still end with its answer. Data that waits is dropped, and
   * data that nobody has read yet is thrown away, as is what still comes.
   */
  cancel(): void

  /** Opener: cancels and does not wait for the answer: `done`, readers and senders reject with the reason now. */
  abort(reason: unknown): void

  /**
   * Data of a channel as it comes; credit is granted as it is taken. Ends at the channel's end or the request's result;
   * throws what `done` rejects with, after the data that came before. One reader a channel. A reader that
   * returns early throws the rest of the channel away, it does not cancel.
   */
  read(channel: number, options?: ReadOptions): AsyncIterable<Uint8Array>

  /** The same for several channels, in the order of arrival. A stalled reader stops them all. */
  readAll(channels: readonly number[], options?: ReadOptions): AsyncIterable<ChannelChunk>

  /** Bytes that have come on a channel, read or not. */
  receivedBytes(channel: number): number
}
