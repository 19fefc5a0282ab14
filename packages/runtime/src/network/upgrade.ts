/** The end of a request for another protocol on its connection, whichever way it was passed on. */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { joinConnections } from './join.ts'

/** A connection that asked for another protocol. */
export interface Upgrading {
  readonly connection: Duplex
  /** What came behind its headers. */
  readonly head: Buffer
}

/** The connection on which the other side has agreed. */
export interface Agreed {
  readonly protocol: string
  /** Of its answer, names and values in turn. */
  readonly headers: readonly string[]
  readonly other: Duplex
  readonly otherHead: Buffer
}

/** Says so on the connection that asked, and joins both. */
export function changeProtocol(
  { connection, head }: Upgrading,
  { protocol, headers, other, otherHead }: Agreed,
): void {
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${protocol}`]
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  connection.write(`${lines.join('\r\n')}\r\n\r\n`)
  if (otherHead.length > 0) other.unshift(otherHead)
  if (head.length > 0) connection.unshift(head)
  joinConnections(connection, other)
}

/** The other side wants no other protocol: its answer is passed on, with these headers, and ends the connection. */
export function answerWithout(
  answer: IncomingMessage,
  request: IncomingMessage,
  { connection, headers }: { readonly connection: Duplex; readonly headers: string[] },
): void {
  const response = new ServerResponse(request)
  response.assignSocket(connection as Socket)
  response.shouldKeepAlive = false
  response.writeHead(answer.statusCode ?? 502, headers)
  response.once('finish', () => connection.end())
  // Cut off: it must not look whole.
  answer.once('close', () => answer.complete || connection.destroy())
  answer.pipe(response)
}
