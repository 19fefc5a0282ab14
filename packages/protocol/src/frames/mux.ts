import { FrameDecoder } from './decoder.ts'
import { FrameWriter } from './encode.ts'
import { parseFailure } from './failure.ts'
import { FRAME, FRAME_LIMITS, type FrameType, MalformedFrame } from './frame.ts'
import { LiveStream } from './live-stream.ts'
import type { MuxStream } from './mux-stream.ts'
import { decodePayload, type PayloadMap } from './payload.ts'
import { Pings } from './pings.ts'
import { Round } from './round.ts'
import { ConnectionLost, MuxBusy } from './stream-error.ts'
import type { StreamHost } from './stream-host.ts'

/** Where a multiplexer's bytes go. It is ordered and reliable; the mux never closes it. */
export interface FrameTransport {
  /**
   * Takes whole frames, one or several at once; the array is the transport's until it calls `done`, after which it is written
   * to again. A transport that never calls it keeps the array. False: it is congested, and the mux writes nothing
   * more until the callback given to `onDrain` is called.
   */
  write(bytes: Uint8Array, done: () => void): boolean | undefined
  /** Called once, by the constructor: `resume` is to be called whenever a congested transport has drained. */
  onDrain(resume: () => void): void
}

export interface MuxLimits {
  /** Streams under way at once, both sides' together. Default 1,024. */
  readonly streams: number
  /**
   * Bytes of control frames that wait for a congested transport; beyond it the mux closes, because its peer
   * doesn't read. Default 16 MiB.
   */
  readonly controlBytes: number
}

export interface MuxOptions {
  readonly transport: FrameTransport
  /** The dialling side opens odd stream ids, the dialled one even ids. */
  readonly side: 'dialler' | 'dialled'
  /**
   * A request of the peer. Called before any further frame of the stream is handled, so readers and `onEvent`
   * that are set here miss nothing. Every stream is ended by one `result` or `fail`, whenever that is; a throw fails
   * it with code `io`. Without `onOpen` each request is answered `unsupported`.
   */
  readonly onOpen?: (stream: MuxStream, request: PayloadMap) => void
  /** The peer's hello; without it a hello is malformed. */
  readonly onHello?: (hello: PayloadMap) => void
  /** Once, when the mux is over: `MalformedFrame`, `ConnectionLost`, or what `close` was given. */
  readonly onClose?: (error: Error) => void
  readonly limits?: Partial<MuxLimits>
}

export interface OpenOptions {
  /** Aborting it is `stream.abort(signal.reason)`. */
  readonly signal?: AbortSignal
}

const DEFAULT_LIMITS: MuxLimits = { streams: 1_024, controlBytes: 16 * 2 ** 20 }
/** As much as one write takes before the next frame is left to the next write. */
const WRITE_BYTES = 65_536
const STREAM_ID_MAX = 0xffff_fffd

/**
 * Many requests with their streams over one ordered connection: docs/wire.md without the sync. The same class serves
 * both ends of the guest channel and of the client's WebSocket.
 *
 * Data of different streams takes turns, a frame each. Control frames go first, except that an `end` or a `result` goes behind the
 * data it ends. A reader that stalls stops its own channel and nothing else. Writes of one turn of the event loop
 * leave together.
 */
export class Mux {
  readonly #options: MuxOptions
  readonly #limits: MuxLimits
  readonly #decoder: FrameDecoder
  readonly #streams = new Map<number, LiveStream>()
  readonly #round = new Round()
  readonly #writer = new FrameWriter()
  readonly #pings = new Pings()
  readonly #host: StreamHost
  #nextId: number
  #highestPeerId = 0
  #flushing = false
  #congested = false
  #closedBy: Error | undefined

  constructor(options: MuxOptions) {
    this.#options = options
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits }
    this.#nextId = options.side === 'dialler' ? 1 : 2
    this.#decoder = new FrameDecoder((...frame) => this.deliver(...frame))
    this.#host = {
      writer: this.#writer,
      written: () => this.#flushSoon(),
      ready: (stream) => {
        this.#round.add(stream)
        this.#flushSoon()
      },
      over: (stream) => this.#streams.delete(stream.id),
    }
    options.transport.onDrain(() => {
      this.#congested = false
      this.#flush()
    })
  }

  /** Streams under way, also those whose answer is not written yet. */
  get openStreams(): number {
    return this.#streams.size
  }

  /** Why the mux is over, once it is. */
  get closedBy(): Error | undefined {
    return this.#closedBy
  }

  /** Takes bytes from the transport, cut anywhere. Never throws: what is malformed closes the mux. */
  receive(chunk: Uint8Array): void {
    if (this.#closedBy) return
    try {
      this.#decoder.push(chunk)
    } catch (error) {
      this.close(asError(error))
    }
  }

  /** Takes one frame that another decoder cut out, as `receive` does. */
  deliver(type: FrameType, channel: number, stream: number, payload: Uint8Array): void {
    if (this.#closedBy) return
    try {
      this.#handle(type, channel, stream, payload)
    } catch (error) {
      this.close(asError(error))
    }
  }

  /**
   * Starts a request. Throws `MuxBusy` when too many streams are under way, `PayloadTooLarge` when the map doesn't fit a frame,
   * the signal's reason when it is aborted, and `ConnectionLost` when the mux is over.
   */
  open(request: PayloadMap, options: OpenOptions = {}): MuxStream {
    if (this.#closedBy) throw asLost(this.#closedBy)
    const { signal } = options
    signal?.throwIfAborted()
    if (this.#streams.size >= this.#limits.streams) throw new MuxBusy(this.#limits.streams)
    const id = this.#nextId
    if (id > STREAM_ID_MAX) this.close(new ConnectionLost('all stream ids are used up'))
    if (this.#closedBy) throw asLost(this.#closedBy)
    this.#writer.map(FRAME.open, id, request)
    this.#nextId += 2
    const stream = new LiveStream(this.#host, id, 'opener')
    this.#streams.set(id, stream)
    if (signal) {
      const abort = () => stream.abort(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      const release = () => signal.removeEventListener('abort', abort)
      stream.done.then(release, release)
    }
    this.#flushSoon()
    return stream
  }

  /** Greets the peer: the dialled side's first frame. */
  hello(map: PayloadMap): void {
    this.#writer.map(FRAME.hello, 0, map)
    this.#flushSoon()
  }

  /** Resolves when the peer has answered; rejects with `ConnectionLost`. */
  ping(): Promise<void> {
    if (this.#closedBy) return Promise.reject(asLost(this.#closedBy))
    const { payload, answered } = this.#pings.next()
    this.#writer.frame(FRAME.ping, 0, 0, payload)
    this.#flushSoon()
    return answered
  }

  /** Ends all streams with `ConnectionLost`; what was not written is dropped. Idempotent. */
  close(error: Error = new ConnectionLost('closed by this side')): void {
    if (this.#closedBy) return
    this.#closedBy = error
    const lost = asLost(error)
    for (const stream of [...this.#streams.values()]) stream.lose(lost)
    this.#streams.clear()
    this.#pings.lose(lost)
    this.#writer.clear()
    this.#options.onClose?.(error)
  }

  #handle(type: FrameType, channel: number, id: number, payload: Uint8Array): void {
    if (type >= FRAME.open) {
      if (type === FRAME.open) this.#accept(id, payload)
      else this.#handleStream(type, channel, id, payload)
    } else if (type === FRAME.ping) {
      this.#writer.frame(FRAME.pong, 0, 0, payload)
      this.#flushSoon()
    } else if (type === FRAME.pong) this.#pings.answer(payload)
    else if (type === FRAME.hello && this.#options.onHello) {
      this.#options.onHello(decodePayload(payload))
    } else throw new MalformedFrame('stream', 'a frame that has no place on this connection')
  }

  #handleStream(type: FrameType, channel: number, id: number, payload: Uint8Array): void {
    const stream = this.#streams.get(id)
    if (!stream) {
      if (this.#wasOpened(id)) return
      throw new MalformedFrame('stream', `stream ${id} was never opened`)
    }
    if (type === FRAME.data) stream.handleData(channel, payload)
    else if (type === FRAME.credit) stream.handleCredit(channel, readCredit(payload))
    else if (type === FRAME.end) stream.handleEnd(channel)
    else if (type === FRAME.event) stream.handleEvent(decodePayload(payload))
    else if (type === FRAME.result) stream.handleAnswer(decodePayload(payload))
    else if (type === FRAME.error) stream.handleError(parseFailure(decodePayload(payload)))
    else stream.handleCancel()
  }

  #accept(id: number, payload: Uint8Array): void {
    if (!this.#isPeers(id) || id <= this.#highestPeerId) {
      throw new MalformedFrame('stream', `stream id ${id} is not the peer's next`)
    }
    this.#highestPeerId = id
    if (this.#streams.size >= this.#limits.streams) {
      const message = 'too many requests are under way on this connection'
      this.#writer.map(FRAME.error, id, { code: 'limit', message })
      this.#flushSoon()
      return
    }
    const stream = new LiveStream(this.#host, id, 'acceptor')
    this.#streams.set(id, stream)
    const { onOpen } = this.#options
    if (!onOpen) {
      stream.fail({ code: 'unsupported', message: 'this side takes no requests' })
      return
    }
    try {
      onOpen(stream, decodePayload(payload))
    } catch (error) {
      const code = error instanceof MalformedFrame ? 'invalid' : 'io'
      stream.fail({ code, message: asError(error).message })
    }
  }

  #isPeers(id: number): boolean {
    return id > 0 && id % 2 === (this.#options.side === 'dialler' ? 0 : 1)
  }

  #wasOpened(id: number): boolean {
    return id > 0 && (this.#isPeers(id) ? id <= this.#highestPeerId : id < this.#nextId)
  }

  #flushSoon(): void {
    if (this.#congested) {
      if (this.#writer.length <= this.#limits.controlBytes || this.#closedBy) return
      this.close(new ConnectionLost('the peer does not read'))
    } else if (!this.#flushing) {
      this.#flushing = true
      queueMicrotask(() => this.#flush())
    }
  }

  /** Writes until nothing is ready or the transport is congested. */
  #flush(): void {
    this.#flushing = true
    try {
      while (!this.#congested && !this.#closedBy) {
        while (this.#writer.length < WRITE_BYTES && this.#round.writeTurn(this.#writer)) {}
        if (this.#writer.length === 0) return
        this.#congested = this.#options.transport.write(...this.#writer.lend()) === false
      }
    } catch (error) {
      this.close(new ConnectionLost('the transport failed', { cause: error }))
    } finally {
      this.#flushing = false
    }
  }
}

function readCredit(payload: Uint8Array): number {
  return new DataView(payload.buffer, payload.byteOffset, FRAME_LIMITS.credit).getUint32(0, true)
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function asLost(error: Error): ConnectionLost {
  return error instanceof ConnectionLost
    ? error
    : new ConnectionLost(error.message, { cause: error })
}
