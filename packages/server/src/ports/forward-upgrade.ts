import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { joinConnections } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import { explained, type Forwarded, requestTo } from './forward.ts'
import { headersOutward } from './forward-headers.ts'
import { PortAgent } from './port-agent.ts'
import type { Ports } from './ports.ts'

/** A request for another protocol on its connection, such as a WebSocket. */
export interface Upgrade extends Omit<Forwarded, 'outgoing'> {
  readonly connection: Duplex
  /** What came behind its headers. */
  readonly head: Buffer
}

/** Asks the server for the protocol, and joins both connections where it agrees. What it answers else is passed on as it is. */
export class UpgradeForwarder {
  readonly #agent: PortAgent

  constructor(ports: Ports) {
    this.#agent = new PortAgent(ports, { kept: false })
  }

  /** Resolves when the connection is over. Rejects, with nothing answered, where the server could not be asked. */
  async forward(upgrade: Upgrade): Promise<void> {
    const { incoming, connection, head, target, view } = upgrade
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const left = new AbortController()
    connection.once('close', () => {
      left.abort()
      resolve()
    })
    if (connection.destroyed) return
    idleAfter(connection, SERVER_LIMITS.portStreamIdleMs)
    const protocol = incoming.headers.upgrade ?? ''
    const onward = requestTo(upgrade, {
      agent: this.#agent,
      more: ['Connection', 'Upgrade', 'Upgrade', protocol],
      signal: left.signal,
    })
    onward.on('upgrade', (answer, inner, innerHead) => {
      connection.write(switching(answer, headersOutward(answer, incoming, view)))
      if (innerHead.length > 0) inner.unshift(innerHead)
      if (head.length > 0) connection.unshift(head)
      joinConnections(connection, inner)
    })
    onward.on('response', (answer) => refused(answer, upgrade))
    onward.on('error', (error) => void explained(target, error).then(reject))
    onward.end()
    return await promise
  }
}

/** The head of the answer by which the connection changes its protocol. */
function switching(answer: IncomingMessage, headers: readonly string[]): string {
  const { upgrade = '' } = answer.headers
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${upgrade}`]
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** The server wants no other protocol: its answer, and the end of the connection. */
function refused(answer: IncomingMessage, { incoming, connection, view }: Upgrade): void {
  const outgoing = new ServerResponse(incoming)
  outgoing.assignSocket(connection as Socket)
  outgoing.shouldKeepAlive = false
  outgoing.writeHead(answer.statusCode ?? 502, headersOutward(answer, incoming, view))
  outgoing.once('finish', () => connection.end())
  answer.once('close', () => answer.complete || connection.destroy())
  answer.pipe(outgoing)
}

function idleAfter(connection: Duplex, idleMs: number): void {
  const socket = connection as Socket
  socket.setTimeout(idleMs, () => socket.destroy())
}
