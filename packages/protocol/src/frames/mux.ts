import type { FrameType } from './frame.ts'
import type { MuxStream } from './mux-stream.ts'
import type { PayloadMap } from './payload.ts'

/** Where a multiplexer's bytes go. It is ordered and reliable; the mux never closes it. */
export interface FrameTransport {
  /**
   * Takes whole frames, one or several at once; the array is the transport's from then on. False: it is
   * congested, and the mux writes nothing more until the callback given to `onDrain` is called.
   */
  write(bytes: Uint8Array): boolean | undefined
  /** Called once, by the constructor: `resume` is to be called whenever a congested transport has drained. */
  onDrain(resume: () => void): void
}

export interface MuxLimits {
  /** Streams under way at once, both sides' together. */
  readonly streams: number
  /** Control frames that wait for a congested transport. Beyond it the connection is closed: the peer doesn't read. */
  readonly controlBytes: number
}

export interface MuxOptions {
  readonly transport: FrameTransport
  /** The dialling side opens odd stream ids, the dialled one even ids. */
  readonly side: 'dialler' | 'dialled'
  /**
   * A request of the peer. Called before any further frame of the stream is handled, so readers and `onEvent`
   * that are set here miss nothing. Every stream is ended by exactly one `result` or `fail`, whenever that is.
   * A throw fails the stream with code `io`. Without it each request is answered `unsupported`.
   */
  readonly onOpen?: (stream: MuxStream, request: PayloadMap) => void
  /** The peer's hello; without it a hello is malformed. */
  readonly onHello?: (hello: PayloadMap) => void
  /** Once, when the mux is over: by `close`, or by itself after a malformed frame (`MalformedFrame`) or congestion. */
  readonly onClose?: (error: Error) => void
  readonly limits?: Partial<MuxLimits>
}

export interface OpenOptions {
  /** Aborting it is `stream.abort(signal.reason)`. */
  readonly signal?: AbortSignal
  /** Bytes the peer may have under way on each channel that is read; at least 262,144, the default. */
  readonly window?: number
}

/**
 * Many requests with their streams over one ordered connection: docs/wire.md without the sync. The same class serves
 * both ends of the guest channel and of the client's WebSocket.
 *
 * Data of different streams takes turns, a frame each; control frames go first, but never overtake the data of
 * their own channel that they end. A reader that stalls stops its own stream and nothing else.
 */
export declare class Mux {
  constructor(options: MuxOptions)

  /** Takes bytes from the transport, cut anywhere. Never throws: what is malformed closes the mux. */
  receive(chunk: Uint8Array): void

  /** Takes one frame that somebody else decoded, as `receive` does. */
  deliver(type: FrameType, channel: number, stream: number, payload: Uint8Array): void

  /**
   * Starts a request. Throws `MuxBusy` when too many streams are under way, `PayloadTooLarge` when the map doesn't fit a frame,
   * and `ConnectionLost` when the mux is over.
   */
  open(request: PayloadMap, options?: OpenOptions): MuxStream

  /** Greets the peer; the dialled side's first frame. */
  hello(map: PayloadMap): void

  /** Resolves when the peer has answered; rejects with `ConnectionLost`. */
  ping(): Promise<void>

  /** Ends all streams with `ConnectionLost`; what was not written is dropped. Idempotent. */
  close(error?: Error): void

  /** Streams under way, also those whose last frame is not written yet. */
  get openStreams(): number

  get closed(): boolean
}
