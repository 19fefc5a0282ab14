/** The streams of a client: one WebSocket at first, more under load, opened again when they break. */
import type { ConnectRequestInput } from '@sandlot/protocol'
import type { MuxStream, PayloadMap } from '@sandlot/protocol/frames'
import type { Address } from './address.ts'
import { asSandlotError, clientClosed } from './failure.ts'
import { Outage } from './outage.ts'
import { unlessAborted } from './signals.ts'
import { openSocket, type Socket } from './socket.ts'
import { checkWholeText } from './whole-text.ts'

const SOCKETS_MAX = 16
/** Streams on the least loaded socket before one more is opened. */
const STREAMS_BEFORE_MORE = 512

/** Opens streams; shared by everything of one client. */
export class Connection {
  readonly #address: Address
  readonly #sockets = new Set<Socket>()
  #opening: Promise<Socket> | undefined
  #closed = false

  constructor(address: Address) {
    this.#address = address
  }

  /**
   * Starts a request on the least loaded socket. Nothing is repeated here: what may be asked again, its caller asks again, with an
   * `outage`. Throws `unreachable` when no daemon answers, `too_large` when the request doesn't fit a frame, `invalid_request` for
   * text that has no bytes, and the signal's reason; an abort later is the stream's.
   */
  async open(request: ConnectRequestInput, signal?: AbortSignal): Promise<MuxStream> {
    checkWholeText(request)
    const socket = await unlessAborted(this.#socket(), signal)
    try {
      return socket.open(request as PayloadMap, signal)
    } catch (error) {
      throw asSandlotError(error)
    }
  }

  /** For something that is tried again while the daemon is away. */
  outage(): Outage {
    return new Outage(this.#address)
  }

  /** Ends all streams. Idempotent. */
  close(): void {
    this.#closed = true
    for (const socket of this.#sockets) socket.close()
  }

  async #socket(): Promise<Socket> {
    if (this.#closed) throw clientClosed()
    let best: Socket | undefined
    for (const socket of this.#sockets) {
      if (socket.isOver) continue
      if (!best || socket.openStreams < best.openStreams) best = socket
    }
    if (!best) return await this.#openOne()
    // Nobody waits for one more: the next requests find it.
    const crowded = best.openStreams >= STREAMS_BEFORE_MORE && this.#sockets.size < SOCKETS_MAX
    if (crowded) this.#openOne().catch(() => undefined)
    return best
  }

  /** However many ask, one is opened at a time. */
  #openOne(): Promise<Socket> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #open(): Promise<Socket> {
    const socket = await openSocket(await this.#address.endpoint())
    this.#address.met()
    if (this.#closed) {
      socket.close()
      throw clientClosed()
    }
    this.#sockets.add(socket)
    socket.closed.then(() => this.#sockets.delete(socket))
    return socket
  }
}
