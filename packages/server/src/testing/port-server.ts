import { createServer, type RequestListener, type Server } from 'node:http'
import type { FakeScript } from '@sandlot/runtime'

/** A server that a command `serve` of a sandbox in memory is, on this port; other commands end at once. */
export function servedBy(server: Server, port: number): FakeScript {
  return ({ argv, listen }) => {
    if (argv[0] !== 'serve') return {}
    listen(port, (connection) => {
      connection.on('error', () => {})
      server.emit('connection', Object.assign(connection, LIKE_SOCKET))
    })
    return { hangs: true }
  }
}

export function httpServer(onRequest: RequestListener): Server {
  return createServer({ keepAliveTimeout: 1_000 }, onRequest)
}

/** What Node's server asks of a socket besides being a stream. */
const LIKE_SOCKET = {
  setTimeout() {
    return this
  },
  setNoDelay() {
    return this
  },
  setKeepAlive() {
    return this
  },
}
