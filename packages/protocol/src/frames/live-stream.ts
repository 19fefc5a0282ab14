import type { FrameWriter } from './encode.ts'
import { failureToSend } from './failure.ts'
import { FRAME, MalformedFrame } from './frame.ts'
import type { ChannelChunk } from './inbox.ts'
import { Inlets } from './inlets.ts'
import { CHANNELS, type MuxStream, type ReadOptions } from './mux-stream.ts'
import { Outlet } from './outlet.ts'
import { encodePayload, type PayloadMap } from './payload.ts'
import { RemoteError, StreamCancelled, type StreamFailure, StreamOver } from './stream-error.ts'
import type { StreamHost } from './stream-host.ts'

const NOTHING = new Uint8Array(0)

/**
 * A stream as its mux sees it.
 *
 * | state | how it is entered | what holds |
 * |---|---|---|
 * | live | open | both directions flow |
 * | answered | acceptor: `result` while data waits | data that waits still goes, then the result |
 * | abandoned | opener: `abort` | everything local is settled; the peer's answer is awaited for the table's sake |
 * | over | the answer went or came, or the connection is lost | nothing |
 */
export class LiveStream implements MuxStream {
  readonly id: number
  readonly done: Promise<PayloadMap>
  onEvent?: ((event: PayloadMap) => void) | undefined
  /** Whether the mux has it in its round. */
  queued = false

  readonly #host: StreamHost
  readonly #role: 'opener' | 'acceptor'
  readonly #outlets: (Outlet | undefined)[] = [undefined, undefined, undefined, undefined]
  readonly #inlets: Inlets
  #state: 'live' | 'answered' | 'abandoned' | 'over' = 'live'
  #cancelled = false
  /** Why nothing is sent any more. */
  #closedBy: unknown
  #answer: { map: PayloadMap; payload: Uint8Array } | undefined
  #turn = 0
  #controller: AbortController | undefined
  #signalled: Error | undefined
  #resolve!: (map: PayloadMap) => void
  #reject!: (reason: unknown) => void

  constructor(host: StreamHost, id: number, role: 'opener' | 'acceptor') {
    this.#host = host
    this.id = id
    this.#role = role
    this.#inlets = new Inlets((channel, bytes) => this.#grant(channel, bytes))
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.done.catch(ignore)
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#signalled) this.#controller.abort(this.#signalled)
    }
    return this.#controller.signal
  }

  send(channel: number, bytes: Uint8Array): Promise<void> {
    if (this.#closedBy !== undefined) return Promise.reject(this.#closedBy)
    if (this.#state !== 'live') return Promise.reject(new StreamOver())
    if (bytes.length === 0) return Promise.resolve()
    const outlet = this.#outlet(channel)
    const sent = outlet.send(bytes)
    if (outlet.ready) this.#host.ready(this)
    return sent
  }

  end(channel: number): void {
    if (this.#state !== 'live' || this.#closedBy !== undefined) return
    const outlet = this.#outlet(channel)
    outlet.end()
    if (outlet.ready) this.#host.ready(this)
  }

  event(map: PayloadMap): void {
    if (this.#state !== 'live') return
    this.#host.writer.map(FRAME.event, this.id, map)
    this.#host.written()
  }

  result(map: PayloadMap): void {
    this.#assertAcceptor()
    if (this.#state !== 'live') return
    const payload = encodePayload(map)
    this.#state = 'answered'
    if (this.#isIdle()) this.#writeResult(map, payload)
    else {
      this.#answer = { map, payload: payload.slice() }
      this.#host.ready(this)
    }
  }

  fail(failure: StreamFailure): void {
    this.#assertAcceptor()
    if (this.#state !== 'live' && this.#state !== 'answered') return
    const told = failureToSend(failure)
    this.#host.writer.map(FRAME.error, this.id, { ...told })
    this.#host.written()
    this.#finish({ reason: new RemoteError(told) })
  }

  cancel(): void {
    if (this.#role !== 'opener') throw new TypeError('only the opener of a stream cancels it')
    if (this.#state !== 'live' || this.#cancelled) return
    this.#cancelled = true
    this.#host.writer.frame(FRAME.cancel, 0, this.id, NOTHING)
    this.#host.written()
    this.#stopSending(new StreamCancelled())
    this.#inlets.discard()
  }

  abort(reason: unknown): void {
    if (this.#state !== 'live') return
    this.cancel()
    this.#state = 'abandoned'
    this.#closedBy = reason
    this.#inlets.finish({ reason })
    this.#reject(reason)
  }

  read(channel: number, options: ReadOptions = {}): AsyncIterable<Uint8Array> {
    const chunks = this.readAll([channel], options)[Symbol.asyncIterator]()
    const iterator: AsyncIterator<Uint8Array> = {
      next: () => chunks.next().then(bytesOf),
      return: async () => {
        await chunks.return?.()
        return { done: true, value: undefined }
      },
    }
    return { [Symbol.asyncIterator]: () => iterator }
  }

  readAll(channels: readonly number[], options: ReadOptions = {}): AsyncIterable<ChannelChunk> {
    for (const channel of channels) assertChannel(channel)
    const inbox = this.#inlets.claim(channels, options.window)
    const iterator: AsyncIterator<ChannelChunk> = {
      next: () => inbox.next(),
      return: async () => {
        inbox.discard()
        return { done: true, value: undefined }
      },
    }
    return { [Symbol.asyncIterator]: () => iterator }
  }

  receivedBytes(channel: number): number {
    return this.#inlets.receivedBytes(channel)
  }

  // ---- called by the mux

  handleData(channel: number, payload: Uint8Array): void {
    this.#inlets.receive(channel, payload)
  }

  handleCredit(channel: number, bytes: number): void {
    if (channel >= CHANNELS) throw new MalformedFrame('channel', `channel ${channel}`)
    if (this.#state !== 'live' && this.#state !== 'answered') return
    const outlet = this.#outlet(channel)
    outlet.credit.grant(bytes)
    if (outlet.ready) this.#host.ready(this)
  }

  handleEnd(channel: number): void {
    this.#inlets.end(channel)
  }

  handleEvent(event: PayloadMap): void {
    if (this.#state !== 'live') return
    try {
      this.onEvent?.(event)
    } catch (error) {
      if (this.#role === 'opener') this.abort(error)
      else this.fail({ code: 'io', message: String(error) })
    }
  }

  handleAnswer(map: PayloadMap): void {
    this.#assertMayCome('opener')
    this.#finish(undefined, map)
  }

  handleError(failure: StreamFailure): void {
    this.#assertMayCome('opener')
    this.#finish({ reason: new RemoteError(failure) })
  }

  handleCancel(): void {
    this.#assertMayCome('acceptor')
    if (this.#state !== 'live') return
    const reason = new StreamCancelled()
    this.#stopSending(reason)
    this.#inlets.finish({ reason })
    this.#abortSignal(reason)
  }

  /** The connection is gone. */
  lose(reason: Error): void {
    if (this.#state === 'over') return
    this.#finish({ reason })
    this.#abortSignal(reason)
  }

  /** Writes one frame; true when another is ready. */
  writeTurn(writer: FrameWriter): boolean {
    for (let i = 0; i < CHANNELS; i++) {
      const channel = (this.#turn + i) % CHANNELS
      const outlet = this.#outlets[channel]
      if (!outlet?.ready) continue
      outlet.write(writer, this.id, channel)
      this.#turn = channel + 1
      break
    }
    if (this.#answer && this.#isIdle()) {
      this.#writeResult(this.#answer.map, this.#answer.payload)
      return false
    }
    return this.#outlets.some((outlet) => outlet?.ready)
  }

  // ---- inside

  #writeResult(map: PayloadMap, payload: Uint8Array): void {
    this.#host.writer.frame(FRAME.result, 0, this.id, payload)
    this.#host.written()
    this.#finish(undefined, map)
  }

  /** Settles everything; the stream leaves the table. */
  #finish(failure: { reason: unknown } | undefined, map: PayloadMap = {}): void {
    this.#state = 'over'
    this.#answer = undefined
    this.#stopSending(failure ? failure.reason : new StreamOver())
    this.#inlets.finish(failure)
    if (failure) this.#reject(failure.reason)
    else this.#resolve(map)
    this.#host.over(this)
  }

  #stopSending(reason: unknown): void {
    this.#closedBy ??= reason
    for (const outlet of this.#outlets) outlet?.drop(reason)
  }

  #isIdle(): boolean {
    return this.#outlets.every((outlet) => !outlet || outlet.idle)
  }

  #outlet(channel: number): Outlet {
    assertChannel(channel)
    const outlet = this.#outlets[channel] ?? new Outlet()
    this.#outlets[channel] = outlet
    return outlet
  }

  #grant(channel: number, bytes: number): void {
    if (this.#state === 'over') return
    this.#host.writer.credit(channel, this.id, bytes)
    this.#host.written()
  }

  #abortSignal(reason: Error): void {
    this.#signalled = reason
    this.#controller?.abort(reason)
  }

  #assertAcceptor(): void {
    if (this.#role !== 'acceptor') throw new TypeError('only the acceptor of a stream answers it')
  }

  #assertMayCome(role: 'opener' | 'acceptor'): void {
    if (this.#role !== role) throw new MalformedFrame('stream', 'a frame from the wrong side')
  }
}

function assertChannel(channel: number): void {
  if (channel < 0 || channel >= CHANNELS) throw new RangeError(`a stream has no channel ${channel}`)
}

function bytesOf(chunk: IteratorResult<ChannelChunk>): IteratorResult<Uint8Array> {
  return chunk.done ? chunk : { done: false, value: chunk.value.bytes }
}

function ignore(): void {}
