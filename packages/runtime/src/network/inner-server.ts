import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * A server that answers inside a sandbox, on the port of its way out: whatever names no other host comes here. It listens nowhere, and
 * must not believe a connection for where it comes from.
 */
export interface InnerServer {
  request(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** Another protocol is wanted, such as a WebSocket. */
  upgrade(incoming: IncomingMessage, duplex: Duplex, head: Buffer): void
}
