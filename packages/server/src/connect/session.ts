import {
  CONNECT_REVISION,
  type ConnectRequest,
  connectRequest,
  invalidRequest,
  newId,
  type SandlotError,
} from '@sandlot/protocol'
import { ConnectionLost, Mux, type MuxStream, type PayloadMap } from '@sandlot/protocol/frames'
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import type { CoordinatorPort } from '../coordinator/port.ts'
import { toSandlotError } from '../failure.ts'
import type { Caller } from '../http/keys.ts'
import { type RateLimits, rateNameOf } from '../http/rate-limits.ts'
import type { Rights } from '../http/rights.ts'
import { requireOpReach } from '../http/sandbox-token.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { Node } from '../node/node.ts'
import type { Ports } from '../ports/ports.ts'
import { redacted } from '../redact.ts'
import type { Serving } from '../serving.ts'
import { VERSION } from '../version.ts'
import { execAttach } from './exec-attach.ts'
import { execStart } from './exec-start.ts'
import { fileList } from './file-list.ts'
import { fileRead } from './file-read.ts'
import { fileWrite } from './file-write.ts'
import { portOpen } from './port-open.ts'
import { portWait } from './port-wait.ts'
import { tarIn } from './tar-in.ts'
import { tarOut } from './tar-out.ts'
import { worker } from './worker.ts'

/** What the requests of one connection work with. */
export interface Session {
  readonly caller: Caller
  readonly rights: Rights
  readonly rates: RateLimits
  readonly node: Node
  readonly ports: Ports
  readonly coordinator: CoordinatorPort
  readonly serving: Serving
  readonly log: Logger
  /** Told of each request when it has ended. */
  readonly onEnded: (op: ConnectRequest['op'], error: SandlotError | undefined) => void
}

/**
 * Does one request and gives its result. It must take what it needs of the stream's data and events before its first `await`.
 */
export type Operation<Op extends ConnectRequest['op']> = (
  stream: MuxStream,
  request: Extract<ConnectRequest, { op: Op }>,
  session: Session,
) => Promise<PayloadMap>

const OPERATIONS: { readonly [Op in ConnectRequest['op']]: Operation<Op> } = {
  'exec.start': execStart,
  'exec.attach': execAttach,
  'file.read': fileRead,
  'file.write': fileWrite,
  'file.list': fileList,
  'tar.out': tarOut,
  'tar.in': tarIn,
  'port.open': portOpen,
  'port.wait': portWait,
  worker,
}

/** Serves one client's WebSocket until it ends. */
export function serveSocket(socket: WebSocket, session: Session): void {
  socket.binaryType = 'nodebuffer'
  let resume = () => {}
  const isFree = () => socket.bufferedAmount < SERVER_LIMITS.socketBytes
  const mux = new Mux({
    side: 'dialled',
    limits: { streams: SERVER_LIMITS.streams },
    transport: {
      write(bytes, done) {
        if (socket.readyState !== socket.OPEN) return true
        // A burst of control frames may be larger than what a client takes in one message; frames may be cut anywhere.
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
    onOpen: (stream, request) => void serveStream(stream, request, session),
    onClose: (error) => {
      const broken = !(error instanceof ConnectionLost)
      // Whoever is let in may break it as often as it connects: that is for whoever looks for it.
      if (broken) session.log.debug({ reason: error.message }, 'a client broke the protocol')
      socket.close(broken ? PROTOCOL_ERROR : NORMAL)
    },
  })
  socket.on('message', (data, isBinary) => {
    if (isBinary) mux.receive(data as Buffer)
    else socket.close(UNSUPPORTED_DATA, 'frames are binary')
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', () => mux.close())
  keepAlive(socket)
  mux.hello({ protocol: CONNECT_REVISION, server: VERSION, session: newId('worker') })
}

const MESSAGE_BYTES = 2 ** 20
const NORMAL = 1000
const PROTOCOL_ERROR = 1002
const UNSUPPORTED_DATA = 1003

async function serveStream(
  stream: MuxStream,
  payload: PayloadMap,
  session: Session,
): Promise<void> {
  stream.done.catch(() => {})
  const parsed = connectRequest.safeParse(payload)
  if (!parsed.success) return fail(stream, invalidRequest('request', parsed.error))
  const operation = OPERATIONS[parsed.data.op] as Operation<ConnectRequest['op']>
  let error: SandlotError | undefined
  try {
    session.rights.check(session.caller)
    session.rates.take(rateNameOf(session.caller))
    requireOpReach(session.caller, parsed.data)
    stream.result(await operation(stream, parsed.data, session))
  } catch (thrown) {
    error = toSandlotError(thrown)
    if (error.code === 'internal') session.log.error({ err: thrown }, 'a request failed')
    fail(stream, error)
  }
  session.onEnded(parsed.data.op, error)
}

function fail(stream: MuxStream, { code, message, hint, details }: SandlotError): void {
  stream.fail({ code, message: redacted(message), hint, ...(details ? { details } : {}) })
}

/** A client that is gone without a word is noticed. */
function keepAlive(socket: WebSocket): void {
  let missed = 0
  socket.on('pong', () => {
    missed = 0
  })
  socket.on('message', () => {
    missed = 0
  })
  const timer = setInterval(() => {
    missed += 1
    if (missed > SERVER_LIMITS.pingsMissed) socket.terminate()
    else socket.ping()
  }, SERVER_LIMITS.pingEveryMs)
  timer.unref()
  socket.once('close', () => clearInterval(timer))
}
