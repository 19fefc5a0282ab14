import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { SandlotError } from '@sandlot/protocol'
import type { Hono } from 'hono'
import { SERVER_LIMITS } from '../limits.ts'
import type { PortGate } from '../ports/port-gate.ts'
import { errorAnswer } from './answer.ts'
import type { Certificate } from './certificate.ts'
import { boundConnections } from './crowd.ts'

export interface Listening {
  readonly server: Server | TlsServer
  readonly url: string
  readonly port: number
}

export interface ListenAt {
  readonly host: string
  readonly port: number
  /** Then it speaks TLS alone. */
  readonly certificate?: Certificate | undefined
}

export type ListenLimits = Pick<
  { readonly [K in keyof typeof SERVER_LIMITS]: number },
  'connections' | 'headersMs' | 'connectionsEveryMs'
>

/**
 * Serves an application.
 * @throws SandlotError `invalid_request` with a hint where the address can't be had
 */
export async function listen(
  app: Hono<{ Bindings: HttpBindings }>,
  at: ListenAt,
  /** Takes what is not for the application. */
  gate: Pick<PortGate, 'takes'>,
  limits: ListenLimits = SERVER_LIMITS,
): Promise<Listening> {
  const listener = getRequestListener(app.fetch as Parameters<typeof getRequestListener>[0], {
    overrideGlobalObjects: false,
    errorHandler: (error) => {
      const { status, body, headers } = errorAnswer(
        error instanceof Error && error.name === 'RequestError'
          ? new SandlotError('invalid_request', error.message)
          : error,
      )
      return new Response(body, { status, headers })
    },
  })
  const options = {
    maxHeaderSize: SERVER_LIMITS.headerBytes,
    headersTimeout: limits.headersMs,
    connectionsCheckingInterval: limits.connectionsEveryMs,
    // Bodies and answers may take as long as they move: `readBytes` and `sendStream` watch that they do.
    requestTimeout: 0,
    keepAliveTimeout: SERVER_LIMITS.keepAliveMs,
    // A client whose machine is gone says nothing, and a build may wait for its function.
    keepAlive: true,
    keepAliveInitialDelay: SERVER_LIMITS.probeMs,
    noDelay: true,
  }
  const onRequest: RequestListener = (incoming, outgoing) => {
    if (!gate.takes(incoming, outgoing)) void listener(incoming, outgoing)
  }
  const { certificate } = at
  const server = certificate
    ? createTlsServer(
        {
          ...options,
          ...certificate,
          minVersion: 'TLSv1.2',
          handshakeTimeout: SERVER_LIMITS.handshakeMs,
        },
        onRequest,
      )
    : createServer(options, onRequest)
  const isTls = certificate !== undefined
  boundConnections(server, limits.connections, isTls ? 'secureConnection' : 'connection')
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(refused(error, at)))
    server.listen(at.port, at.host, resolve)
  })
  const { port } = server.address() as AddressInfo
  const host = at.host.includes(':') ? `[${at.host}]` : at.host
  return { server, port, url: `${isTls ? 'https' : 'http'}://${host}:${port}` }
}

function refused(error: NodeJS.ErrnoException, at: { host: string; port: number }): SandlotError {
  const address = `${at.host}:${at.port}`
  if (error.code === 'EADDRINUSE') {
    return new SandlotError('invalid_request', `another program listens on ${address}`, {
      hint: `Stop it, or start with another port: \`sandlot serve --port ${at.port + 1}\`, or \`--port 0\` for any free one.`,
      cause: error,
    })
  }
  if (error.code === 'EACCES') {
    return new SandlotError('invalid_request', `listening on ${address} is not permitted`, {
      hint: 'Take a port above 1023.',
      cause: error,
    })
  }
  return new SandlotError('invalid_request', `cannot listen on ${address}: ${error.message}`, {
    hint: 'Check the host and the port.',
    cause: error,
  })
}
