import type { PayloadMap } from './payload.ts'

export interface StreamFailure {
  readonly code: string
  readonly message: string
  readonly errno?: number
}

export interface ChannelChunk {
  readonly channel: number
  readonly bytes: Uint8Array
}

/** One request of a `Mux`, seen from either end: the **opener** asks, the **acceptor** answers. */
export declare class MuxStream {
  readonly id: number

  /**
   * Opener: the peer's `result`; rejects with `RemoteError` (its `error`), `ConnectionLost`, or the reason of an `abort`.
   * Acceptor: resolves when its own answer was written. Nobody needs to listen.
   */
  readonly done: Promise<PayloadMap>

  /** Acceptor: aborted when the opener cancels (reason `StreamCancelled`) or the connection is lost. */
  readonly signal: AbortSignal

  /** News of the request from the peer, before any data that was sent after it. Unset: dropped. */
  onEvent?: (event: PayloadMap) => void

  /**
   * Sends bytes on a channel; resolves when credit and the transport let the last of them go, so awaiting it is the
   * back-pressure. The bytes must not change until then. Rejects when the stream is over. At most 1,024 wait at a time.
   */
  send(channel: number, bytes: Uint8Array): Promise<void>

  /** No more data on the channel, behind what was sent. Idempotent. */
  end(channel: number): void

  /** News for the peer. Goes ahead of data that waits for credit. */
  event(map: PayloadMap): void

  /** Acceptor: the request succeeded; goes behind all data that was sent. */
  result(map: PayloadMap): void

  /** Acceptor: it failed; data that was not written is dropped. After an answer it does nothing. */
  fail(failure: StreamFailure): void

  /**
   * Opener: asks the peer to stop; `done` and the readers still end with its answer. Unsent data is dropped, and data that
   * nobody has read yet is thrown away as it comes.
   */
  cancel(): void

  /** Opener: cancels and does not wait for the answer: `done`, readers and senders reject with the reason now. */
  abort(reason: unknown): void

  /**
   * Data of a channel as it comes; credit is granted as it is taken. Ends at the channel's end or the request's result;
   * throws what `done` rejects with, after the data that came before. One reader a channel. A reader that
   * returns early throws the rest of the channel away, it does not cancel.
   */
  read(channel: number): AsyncIterable<Uint8Array>

  /** The same for several channels, in the order of arrival. A stalled reader stops them all. */
  readAll(channels: readonly number[]): AsyncIterable<ChannelChunk>

  /** Bytes that have come on a channel, read or not. */
  receivedBytes(channel: number): number
}
