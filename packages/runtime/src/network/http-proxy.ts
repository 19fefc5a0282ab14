import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerOf, answerText } from './answer-of.ts'
import type { RelayCalls } from './connection.ts'
import { headersOf } from './hop-headers.ts'
import { parseTarget, type Target } from './host.ts'
import { callModel } from './model-relay.ts'
import { passRequest } from './pass-request.ts'
import { REFUSALS, Refusal } from './refusal.ts'
import type { Filled, RequestOut } from './secrets/relay-secrets.ts'
import { join } from './tunnel.ts'

/** A proxy without a port: connections are given to it by its event `connection`. */
export function httpProxy(calls: RelayCalls): Server {
  const server = createServer()
  server.on('connect', (request, inner, head) => void tunnel(calls, request, inner, head))
  server.on('request', (request, response) => void forward(calls, request, response))
  const { server: inside } = calls
  if (inside) {
    server.on('upgrade', (request, inner, head) => {
      const release = calls.occupy(inner)
      if (!release) return void inner.destroy()
      inner.once('close', release)
      inside.upgrade(request, inner, head)
    })
  }
  server.on('clientError', (_error, inner) => {
    if (inner.writable) inner.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
    else inner.destroy()
  })
  return server
}

async function fill(calls: RelayCalls, target: Target, sent: RequestOut): Promise<Filled> {
  if (!calls.secrets) return { ...sent, used: [], cover: (headers) => [...headers] }
  try {
    return await calls.secrets.fill(target, sent, 'plain')
  } catch (error) {
    calls.refuse('http', { target, error })
    throw error
  }
}

async function tunnel(
  calls: RelayCalls,
  request: IncomingMessage,
  inner: Duplex,
  head: Buffer,
): Promise<void> {
  const release = calls.occupy(inner)
  if (!release) return void inner.destroy()
  // At once: behind its end a stream takes nothing back.
  if (head.length > 0) inner.unshift(head)
  try {
    const target = targetOfConnect(calls, request.url ?? '')
    await join(calls, { target, inner, protocol: 'connect' }, () => {
      inner.write('HTTP/1.1 200 Connection established\r\n\r\n')
    })
  } catch (error) {
    inner.end(answerText(error))
    // Until the client leaves too.
    inner.resume()
    release()
  }
}

async function forward(
  calls: RelayCalls,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const inner = request.socket as Duplex
  const release = calls.occupy(inner)
  if (!release) return void inner.destroy()
  response.once('close', release)
  response.on('error', () => inner.destroy())
  // Not of a proxy, but of the one server that there is.
  if (calls.model && request.url?.startsWith('/')) {
    await callModel(calls.model, request, response)
    return
  }
  if (calls.server && request.url?.startsWith('/')) {
    calls.server.request(request, response)
    return
  }
  try {
    const url = urlOf(calls, request.url ?? '')
    const target = targetOfUrl(calls, url)
    const sent = { path: `${url.pathname}${url.search}`, headers: headersOf(request) }
    const filled = await fill(calls, target, sent)
    const outer = await calls.open(target, inner, 'http', new Set(filled.used))
    const headers = [...filled.headers, 'Host', url.host, 'Connection', 'close']
    passRequest(request, response, { ...filled, headers, outer })
  } catch (error) {
    const { status, reason, text } = answerOf(error)
    // What was to be sent is not read to its end; and where there is no room, none is taken up.
    const ends = !request.complete || status === REFUSALS.limit || status === REFUSALS.rate_limit
    response.writeHead(status, reason, {
      'content-type': 'text/plain; charset=utf-8',
      ...(ends ? { connection: 'close' } : {}),
    })
    response.end(text)
  }
}

function targetOfConnect(calls: RelayCalls, authority: string): Target {
  const target = parseTarget(authority)
  if (target) return target
  calls.refuse('connect')
  throw new Refusal('invalid', 'CONNECT takes host:port')
}

function urlOf(calls: RelayCalls, text: string): URL {
  if (/^http:\/\//i.test(text) && URL.canParse(text)) return new URL(text)
  calls.refuse('http')
  throw new Refusal(
    'invalid',
    'this is a proxy: it takes CONNECT host:port, requests for http:// addresses, and SOCKS 5',
  )
}

function targetOfUrl(calls: RelayCalls, url: URL): Target {
  const target = parseTarget(url.host, 80)
  if (target) return target
  calls.refuse('http')
  throw new Refusal('invalid', 'the address of the request names no host')
}
