import type { IncomingMessage, Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import {
  CONNECT_REVISION,
  CONNECT_REVISION_HEADER,
  ROUTES,
  revisionRefusal,
  SandlotError,
} from '@sandlot/protocol'
import { type WebSocket, WebSocketServer } from 'ws'
import { toSandlotError } from '../failure.ts'
import { type AccessRules, checkAccess } from '../http/access.ts'
import { type Answer, errorAnswer } from '../http/answer.ts'
import { type Caller, requireScope } from '../http/keys.ts'
import { type RateLimits, rateNameOf } from '../http/rate-limits.ts'
import { letIn, type Rights } from '../http/rights.ts'
import { scopeOf } from '../http/scopes.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { PortGate } from '../ports/port-gate.ts'
import type { Serving } from '../serving.ts'
import { VERSION } from '../version.ts'

export interface UpgradeOptions {
  readonly server: Server | TlsServer
  readonly rights: Rights
  readonly rates: RateLimits
  readonly access: AccessRules
  readonly serving: Serving
  /** Takes what is for servers in sandboxes. */
  readonly gate: Pick<PortGate, 'takesUpgrade'>
  readonly onSocket: (socket: WebSocket, caller: Caller) => void
  /** Told of each that wants in, with the failure where it was refused. */
  readonly onAsked: (asked: UpgradeAsked) => void
}

export interface UpgradeAsked {
  readonly caller: Caller | undefined
  readonly error: SandlotError | undefined
  readonly address: string | null
}

export interface Sockets {
  readonly count: number
  /** Says good-bye to all. */
  close(): void
}

/** Takes `GET /v1/connect` with the same key as any request; everything else that wants an upgrade is refused. */
export function serveUpgrades(options: UpgradeOptions): Sockets {
  const upgrader = new WebSocketServer({
    noServer: true,
    maxPayload: SERVER_LIMITS.messageBytes,
    perMessageDeflate: false,
  })
  options.server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    duplex.on('error', () => duplex.destroy())
    const address = request.socket.remoteAddress ?? null
    if (options.gate.takesUpgrade(request, duplex, head)) return
    try {
      const caller = admit(request, options)
      options.onAsked({ caller, error: undefined, address })
      upgrader.handleUpgrade(request, duplex, head, (socket) => {
        const held = options.rights.hold(caller, (why) => {
          socket.close(POLICY_VIOLATION, why.message)
        })
        socket.once('close', () => held[Symbol.dispose]())
        options.onSocket(socket, caller)
      })
    } catch (error) {
      options.onAsked({ caller: undefined, error: toSandlotError(error), address })
      refuse(duplex, errorAnswer(error))
    }
  })
  return {
    get count() {
      return upgrader.clients.size
    },
    close: () => {
      for (const socket of upgrader.clients) socket.close(GOING_AWAY, 'the daemon is stopping')
      upgrader.close()
    },
  }
}

const GOING_AWAY = 1001
/** A connection is let in once and stays open for days: its key may be revoked meanwhile, its token expire. */
const POLICY_VIOLATION = 1008

function admit(
  request: IncomingMessage,
  { rights, rates, access, serving }: UpgradeOptions,
): Caller {
  checkAccess(request.headers, access)
  if (request.url?.split('?')[0] !== ROUTES.connect.path) {
    throw new SandlotError('route_unknown', 'there is no WebSocket at this path')
  }
  const caller = letIn(request, { rights, rates })
  rates.take(rateNameOf(caller))
  requireScope(caller, scopeOf('connect'))
  const client = request.headers[CONNECT_REVISION_HEADER]
  const refusal = revisionRefusal({ client, daemon: CONNECT_REVISION, version: VERSION })
  if (refusal) throw refusal
  serving.checkStarted()
  return caller
}

/** An answer in place of the other protocol, and the end of the connection. */
export function refuse(duplex: Duplex, { status, body, headers }: Answer): void {
  const lines = Object.entries({
    ...headers,
    connection: 'close',
    'content-length': Buffer.byteLength(body ?? ''),
  }).map(([name, value]) => `${name}: ${value}`)
  duplex.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
}
