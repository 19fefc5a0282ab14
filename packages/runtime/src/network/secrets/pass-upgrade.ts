import { type Agent, type IncomingMessage, request as openRequest, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { headersOf } from '../hop-headers.ts'
import { joinConnections } from '../join.ts'
import type { Filled } from './relay-secrets.ts'

const PROTOCOL = 'websocket'

/** Whether a request is for another protocol that is passed on; of any other one it is answered as if it had not asked. */
export function wantsUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === PROTOCOL
}

export interface Upgrade extends Filled {
  readonly request: IncomingMessage
  /** From inside. */
  readonly connection: Duplex
  /** What came behind its headers. */
  readonly head: Buffer
  /** Has the connection to the host. */
  readonly agent: Agent
}

/** Asks the host for the protocol, and joins both connections where it agrees. What it answers else is passed on, and ends the connection. */
export function passUpgrade(upgrade: Upgrade): void {
  const { request, connection, head, agent, path, headers, cover } = upgrade
  const onward = openRequest({
    ...{ agent, path, method: request.method ?? 'GET', setHost: false },
    headers: [...headers, 'Connection', 'Upgrade', 'Upgrade', PROTOCOL],
  })
  onward.on('upgrade', (answer, outer, outerHead) => {
    connection.write(switching(cover(headersOf(answer))))
    if (outerHead.length > 0) outer.unshift(outerHead)
    if (head.length > 0) connection.unshift(head)
    joinConnections(connection, outer)
  })
  onward.on('response', (answer) => refused(answer, upgrade))
  // What is joined ends with its connections; before, nothing else would end it.
  onward.on('error', () => void connection.destroy())
  connection.once('close', () => void onward.destroy())
  onward.end()
}

/** The head of the answer by which the connection changes its protocol. */
function switching(headers: readonly string[]): string {
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${PROTOCOL}`]
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

function refused(answer: IncomingMessage, { request, connection, cover }: Upgrade): void {
  const response = new ServerResponse(request)
  response.assignSocket(connection as Socket)
  response.shouldKeepAlive = false
  response.writeHead(answer.statusCode ?? 502, cover(headersOf(answer, ['transfer-encoding'])))
  response.once('finish', () => connection.end())
  // Cut off: it must not look whole.
  answer.once('close', () => answer.complete || connection.destroy())
  answer.pipe(response)
}
