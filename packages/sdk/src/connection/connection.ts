/** The streams of a client: one WebSocket at first, more under load, opened again when they break. */
import {
  type ConnectRequest,
  ERROR_CATALOGUE,
  type ErrorCode,
  SandlotError,
} from '@sandlot/protocol'
import {
  ConnectionLost,
  type MuxStream,
  type PayloadMap,
  RemoteError,
} from '@sandlot/protocol/frames'
import type { Endpoint } from '../config.ts'
import { pause } from './http.ts'
import { openSocket, type Socket } from './socket.ts'

const SOCKETS_MAX = 16
/** Streams on each socket before one more is opened. */
const STREAMS_BEFORE_MORE = 512
const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000
/** How long a broken connection is tried again before the daemon counts as gone. */
const RECONNECT_MS = 120_000

/** Opens streams; shared by everything of one client. */
export class Connection {
  readonly #endpoint: () => Promise<Endpoint>
  readonly #sockets: Promise<Socket>[] = []
  #closed = false

  constructor(endpoint: () => Promise<Endpoint>) {
    this.#endpoint = endpoint
  }

  /**
   * Starts a request on the least loaded socket. Nothing is repeated here: what may be asked again, its caller asks again.
   * Throws `unreachable` when no daemon answers.
   */
  async open(request: ConnectRequest, signal?: AbortSignal): Promise<MuxStream> {
    signal?.throwIfAborted()
    const socket = await this.#socket()
    return socket.mux.open(request as PayloadMap, signal ? { signal } : {})
  }

  /** Waits until a daemon answers again. Throws `unreachable` after two minutes. */
  async reconnect(signal?: AbortSignal): Promise<void> {
    const deadline = Date.now() + RECONNECT_MS
    for (let backoffMs = BACKOFF_FIRST_MS; ; backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS)) {
      try {
        await this.#socket()
        return
      } catch (error) {
        const retry = error instanceof SandlotError && error.retry
        if (this.#closed || !retry || Date.now() > deadline) throw error
      }
      await pause(backoffMs, signal)
    }
  }

  close(): void {
    this.#closed = true
    for (const opening of this.#sockets.splice(0)) {
      opening.then((socket) => socket.close()).catch(() => undefined)
    }
  }

  async #socket(): Promise<Socket> {
    if (this.#closed)
      throw new SandlotError('cancelled', 'the client is closed', { hint: 'Make a new client.' })
    const opened = await Promise.allSettled(this.#sockets)
    let best: Socket | undefined
    for (const socket of opened) {
      if (socket.status !== 'fulfilled' || socket.value.mux.closedBy) continue
      if (!best || socket.value.mux.openStreams < best.mux.openStreams) best = socket.value
    }
    const crowded = best && best.mux.openStreams >= STREAMS_BEFORE_MORE
    if (best && !(crowded && this.#sockets.length < SOCKETS_MAX)) return best
    return await this.#openOne()
  }

  async #openOne(): Promise<Socket> {
    const opening = this.#endpoint().then((endpoint) => openSocket(endpoint))
    this.#sockets.push(opening)
    const forget = () => {
      const position = this.#sockets.indexOf(opening)
      if (position >= 0) this.#sockets.splice(position, 1)
    }
    opening.then((socket) => socket.closed.then(forget), forget)
    return await opening
  }
}

/** What a stream rejected with, as the error that a caller meets. */
export function asSandlotError(thrown: unknown): unknown {
  if (thrown instanceof RemoteError) {
    const code = thrown.code in ERROR_CATALOGUE ? (thrown.code as ErrorCode) : 'internal'
    return new SandlotError(code, thrown.message)
  }
  if (thrown instanceof ConnectionLost) {
    return new SandlotError('connection_lost', 'the connection to the daemon broke', {
      cause: thrown,
    })
  }
  return thrown
}

/** Whether asking again on a new connection makes sense. */
export function isConnectionLoss(thrown: unknown): boolean {
  return (
    thrown instanceof ConnectionLost ||
    (thrown instanceof SandlotError && thrown.code === 'connection_lost')
  )
}
