import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { answerWithout, changeProtocol, type Upgrading } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import { explained, type Forwarded, requestTo } from './forward.ts'
import { headersOutward } from './forward-headers.ts'
import { PortAgent } from './port-agent.ts'
import type { Ports } from './ports.ts'

/** A request for another protocol on its connection, such as a WebSocket. */
export interface Upgrade extends Omit<Forwarded, 'outgoing'>, Upgrading {}

/** Asks the server for the protocol, and joins both connections where it agrees. What it answers else is passed on as it is. */
export class UpgradeForwarder {
  readonly #agent: PortAgent

  constructor(ports: Ports) {
    this.#agent = new PortAgent(ports, { kept: false })
  }

  /** Resolves when the connection is over. Rejects, with nothing answered, where the server could not be asked. */
  async forward(upgrade: Upgrade): Promise<void> {
    const { incoming, connection, target, view } = upgrade
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
    const outward = (answer: IncomingMessage) => headersOutward(answer, incoming, view)
    onward.on('upgrade', (answer, other, otherHead) => {
      const agreed = { protocol: answer.headers.upgrade ?? '', headers: outward(answer) }
      changeProtocol(upgrade, { ...agreed, other, otherHead })
    })
    onward.on('response', (answer) => {
      answerWithout(answer, incoming, { connection, headers: outward(answer) })
    })
    onward.on('error', (error) => void explained(target, error).then(reject))
    onward.end()
    return await promise
  }
}

function idleAfter(connection: Duplex, idleMs: number): void {
  const socket = connection as Socket
  socket.setTimeout(idleMs, () => socket.destroy())
}
