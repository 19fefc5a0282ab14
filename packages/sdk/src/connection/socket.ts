/** One WebSocket to the daemon with a multiplexer on it. */
import { SandlotError } from '@sandlot/protocol'
import { Mux, type PayloadMap } from '@sandlot/protocol/frames'
import WebSocket from 'ws'
import type { Endpoint } from '../config.ts'
import { toError } from './http.ts'

const OPEN_TIMEOUT_MS = 10_000
/** Bytes in the socket's own queue beyond which the multiplexer waits. */
const CONGESTED_BYTES = 1024 * 1024
const FRAME_BYTES_MAX = 2 ** 20
const PING_MS = 10_000
const PONG_TIMEOUT_MS = 20_000

export interface Socket {
  readonly mux: Mux
  /** Resolves when the connection is over. Never rejects. */
  readonly closed: Promise<void>
  close(): void
}

/** Opens a connection; resolves once the daemon has greeted. Throws `unreachable` or `unauthorized`. */
export function openSocket(endpoint: Endpoint, signal?: AbortSignal): Promise<Socket> {
  const url = `${endpoint.url.replace(/^http/, 'ws')}/v1/connect`
  const socket = new WebSocket(url, {
    headers: { authorization: `Bearer ${endpoint.apiKey}` },
    handshakeTimeout: OPEN_TIMEOUT_MS,
    maxPayload: FRAME_BYTES_MAX,
    perMessageDeflate: false,
  })
  socket.binaryType = 'nodebuffer'
  return new Promise((resolve, reject) => {
    const abort = () => {
      socket.terminate()
      reject(toError(signal?.reason))
    }
    signal?.addEventListener('abort', abort, { once: true })
    const mux = muxOver(socket, () => {
      signal?.removeEventListener('abort', abort)
      resolve({ mux, closed, close: () => socket.close() })
    })
    const closed = new Promise<void>((over) => socket.once('close', () => over()))
    socket.once('unexpected-response', (_request, answer) => {
      reject(refusal(answer.statusCode ?? 0, endpoint.url))
      socket.terminate()
    })
    socket.on('error', (error) =>
      reject(
        new SandlotError('unreachable', `no daemon answers at ${endpoint.url}`, { cause: error }),
      ),
    )
    socket.once('close', () => {
      mux.close()
      reject(
        new SandlotError('connection_lost', `the daemon at ${endpoint.url} closed the connection`),
      )
    })
  })
}

function muxOver(socket: WebSocket, onHello: (hello: PayloadMap) => void): Mux {
  let resume = () => {}
  const mux = new Mux({
    side: 'dialler',
    transport: {
      write(bytes) {
        socket.send(bytes, () => socket.bufferedAmount < CONGESTED_BYTES && resume())
        return socket.bufferedAmount < CONGESTED_BYTES
      },
      onDrain(callback) {
        resume = callback
      },
    },
    onHello,
    onClose: () => socket.terminate(),
  })
  socket.on('message', (data) => mux.receive(data as Buffer))
  socket.once('open', () => heartbeat(socket, mux))
  return mux
}

/** A peer that is gone without a word is noticed by its missing answers. */
function heartbeat(socket: WebSocket, mux: Mux): void {
  const timer = setInterval(async () => {
    const late = setTimeout(() => socket.terminate(), PONG_TIMEOUT_MS)
    late.unref?.()
    await mux.ping().catch(() => undefined)
    clearTimeout(late)
  }, PING_MS)
  timer.unref?.()
  socket.once('close', () => clearInterval(timer))
}

function refusal(status: number, url: string): SandlotError {
  if (status === 401)
    return new SandlotError('unauthorized', `the daemon at ${url} refuses the key`)
  if (status === 503) return new SandlotError('draining', `the daemon at ${url} is stopping`)
  return new SandlotError('unreachable', `${url} answered ${status} in place of a WebSocket`)
}
