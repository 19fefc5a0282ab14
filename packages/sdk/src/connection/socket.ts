/** One WebSocket to the daemon with a multiplexer on it. */
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import {
  CONNECT_REVISION,
  CONNECT_REVISION_HEADER,
  ROUTES,
  revisionRefusal,
  SandlotError,
} from '@sandlot/protocol'
import { Mux, type MuxStream, type PayloadMap } from '@sandlot/protocol/frames'
import WebSocket from 'ws'
import type { Endpoint } from '../config.ts'
import { hintOfTls, untrusted, wordsOf } from './http-failure.ts'
import { maskOptions } from './mask.ts'

/** Until the daemon has greeted. */
const OPEN_TIMEOUT_MS = 10_000
/** Bytes in the socket's own queue beyond which the multiplexer waits. */
const CONGESTED_BYTES = 1024 * 1024
/** What is sent in one message; frames may be cut anywhere. */
const MESSAGE_BYTES = 2 ** 20
const MESSAGE_BYTES_MAX = 4 * MESSAGE_BYTES
const STREAMS_MAX = 16_384
const PING_MS = 10_000
const PONG_TIMEOUT_MS = 20_000

export interface Socket {
  readonly openStreams: number
  readonly isOver: boolean
  /** Resolves when the connection is over. Never rejects. */
  readonly closed: Promise<void>
  /** As `Mux.open`. A socket without streams doesn't keep the process alive. */
  open(request: PayloadMap, signal?: AbortSignal): MuxStream
  close(): void
}

/**
 * Opens a connection; resolves once the daemon has greeted. Throws `unreachable`, `unauthorized`, `forbidden`, `protocol_differs`,
 * `draining` or `connection_lost`.
 */
export function openSocket(endpoint: Endpoint): Promise<Socket> {
  const { url, apiKey } = endpoint
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}${ROUTES.connect.path}`, {
    headers: {
      authorization: `Bearer ${apiKey}`,
      [CONNECT_REVISION_HEADER]: `${CONNECT_REVISION}`,
    },
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    ...maskOptions(url),
  })
  socket.binaryType = 'nodebuffer'
  return new Promise((resolve, reject) => {
    const hold = processHold(socket)
    const late = setTimeout(() => {
      reject(new SandlotError('unreachable', `the daemon at ${url} does not greet`))
      socket.terminate()
    }, OPEN_TIMEOUT_MS)
    const closed = new Promise<void>((over) => socket.once('close', () => over()))
    const mux = muxOver(socket, (hello) => {
      clearTimeout(late)
      const { protocol, server } = hello
      const said = { client: CONNECT_REVISION, daemon: protocol, version: String(server) }
      const refused = revisionRefusal(said)
      if (refused) {
        reject(refused)
        return socket.terminate()
      }
      resolve(socketOver(socket, mux, { closed, hold }))
    })
    socket.once('unexpected-response', (_request, answer) => {
      void refusal(answer, url).then((error) => {
        reject(error)
        socket.terminate()
      })
    })
    socket.on('error', (cause) =>
      reject(
        untrusted(cause, url) ??
          new SandlotError('unreachable', `no daemon answers at ${url}`, {
            ...(hungUp(cause) ? hintOfTls(url) : {}),
            cause,
          }),
      ),
    )
    socket.once('close', () => {
      clearTimeout(late)
      mux.close()
      reject(new SandlotError('connection_lost', `the daemon at ${url} closed the connection`))
    })
  })
}

function socketOver(
  socket: WebSocket,
  mux: Mux,
  { closed, hold }: { readonly closed: Promise<void>; readonly hold: (held: boolean) => void },
): Socket {
  let held = 0
  hold(false)
  return {
    closed,
    get openStreams() {
      return mux.openStreams
    },
    get isOver() {
      return mux.closedBy !== undefined
    },
    open(request, signal) {
      const stream = mux.open(request, signal ? { signal } : {})
      if (held++ === 0) hold(true)
      const release = () => {
        if (--held === 0) hold(false)
      }
      stream.done.then(release, release)
      return stream
    },
    // Behind what this turn of the event loop still writes.
    close: () => queueMicrotask(() => socket.close()),
  }
}

/** Says whether the connection keeps the process alive. Runtimes that don't show the connection below are left as they are. */
function processHold(socket: WebSocket): (held: boolean) => void {
  let below: { ref?: () => void; unref?: () => void } | undefined
  socket.once('upgrade', (answer) => {
    below = answer.socket
  })
  return (held) => {
    if (held) below?.ref?.()
    else below?.unref?.()
  }
}

function muxOver(socket: WebSocket, onHello: (hello: PayloadMap) => void): Mux {
  let resume = () => {}
  const isFree = () => socket.bufferedAmount < CONGESTED_BYTES
  const mux = new Mux({
    side: 'dialler',
    limits: { streams: STREAMS_MAX },
    transport: {
      write(bytes, done) {
        if (socket.readyState !== WebSocket.OPEN) return true
        for (let start = 0; start < bytes.length; start += MESSAGE_BYTES) {
          const end = start + MESSAGE_BYTES
          socket.send(bytes.subarray(start, end), () => {
            if (end >= bytes.length) done()
            if (isFree()) resume()
          })
        }
        return isFree()
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

/** Somebody was there, and left without an answer. */
function hungUp(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE'
}

async function refusal(answer: IncomingMessage, url: string): Promise<SandlotError> {
  const status = answer.statusCode ?? 0
  if (status === 401)
    return new SandlotError('unauthorized', `the daemon at ${url} refuses the key`)
  if (status === 403) {
    return new SandlotError(
      'forbidden',
      `the daemon at ${url} does not allow the key to run things`,
    )
  }
  if (status === 426) return wordsOf(status, { url, body: await text(answer).catch(() => '') })
  if (status >= 500) return new SandlotError('draining', `the daemon at ${url} is stopping`)
  return new SandlotError('unreachable', `${url} answered ${status} in place of a WebSocket`)
}
