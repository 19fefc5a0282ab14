import type { Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { SandlotError } from '@sandlot/protocol'
import { SERVER_LIMITS } from '../limits.ts'
import { errorAnswer } from './answer.ts'

/**
 * Bounds the connections of a server: one more than `most` is answered with `rate_limited` and closed, at once and in HTTP, in place
 * of waiting for ever or breaking without a word.
 */
export function boundConnections(
  server: Server | TlsServer,
  most: number,
  event: ServerEvent,
): void {
  let open = 0
  // Where even refusals are too many, the kernel's word has to do.
  server.maxConnections = most + SERVER_LIMITS.refusedAtOnce
  // In the place of what reads requests from each connection: what a refused one asks for would be done, though it is told otherwise.
  const serve = server.listeners(event)
  server.removeAllListeners(event)
  server.on(event, (socket: Socket) => {
    open += 1
    socket.once('close', () => {
      open -= 1
    })
    if (open > most) return refuse(socket, most)
    for (const each of serve) each.call(server, socket)
  })
}

/** By which a server tells of a connection that can be answered. */
export type ServerEvent = 'connection' | 'secureConnection'

function refuse(socket: Socket, most: number): void {
  const error = new SandlotError('rate_limited', `this daemon has ${most} connections open`, {
    hint: 'Close those that nobody uses: a client of the SDK needs one, and more only under load.',
  })
  const { status, body, headers } = errorAnswer(error)
  const lines = Object.entries({
    ...headers,
    connection: 'close',
    'content-length': Buffer.byteLength(body ?? ''),
  }).map(([name, value]) => `${name}: ${value}`)
  socket.on('error', () => socket.destroy())
  // What it sends is read and dropped: unread, it would make the kernel reset the connection before the answer is there.
  socket.resume()
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
  setTimeout(() => socket.destroy(), SERVER_LIMITS.refusedMs).unref()
}
