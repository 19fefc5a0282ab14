import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { connect, TLSSocket } from 'node:tls'
import { answerOf, answerText } from '../answer-of.ts'
import { headersOf } from '../hop-headers.ts'
import { formatTarget, parseTarget, type Target } from '../host.ts'
import { NETWORK_LIMITS } from '../limits.ts'
import { passRequest } from '../pass-request.ts'
import { Refusal } from '../refusal.ts'
import { passUpgrade, type Upgrade, wantsUpgrade } from './pass-upgrade.ts'
import type { Filled, RelaySecrets } from './relay-secrets.ts'

const ALPN = ['http/1.1']

/**
 * TLS over a connection to the host, whose certificate is verified for its name. Rejects with a `Refusal` that says what is wrong with it.
 */
export async function secureOuter(
  outer: Duplex,
  { host, isAddress, port }: Target,
  { trusted }: RelaySecrets,
): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const socket = connect({
    socket: outer,
    host,
    ...(isAddress ? {} : { servername: host }),
    ALPNProtocols: ALPN,
    ...(trusted ? { ca: [...trusted] } : {}),
  })
  const late = setTimeout(
    () => socket.destroy(new Error('it took too long')),
    NETWORK_LIMITS.dialMs,
  )
  socket.once('secureConnect', () => resolve(socket))
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('it was closed')))
  try {
    return await promise
  } catch (error) {
    outer.destroy()
    const why = error instanceof Error ? error.message : String(error)
    const named = formatTarget({ host, isAddress, port })
    throw new Refusal('unreachable', `TLS with ${named} failed: ${why}`, { cause: error })
  } finally {
    clearTimeout(late)
    socket.off('error', reject)
  }
}

export interface Terminated {
  readonly target: Target
  /** From inside, about to begin TLS. */
  readonly inner: Duplex
  /** TLS with the host. */
  readonly outer: TLSSocket
  readonly secrets: RelaySecrets
  /** Told why a request is not passed on. */
  readonly onRefused: (error: unknown) => void
  /** Variables whose secrets were put in are added. */
  readonly used: Set<string>
}

/**
 * Is the host for whom is inside, and passes each request on over `outer`, with its secrets. When either connection ends, so does the
 * other: what is inside sees what it would see of the host.
 */
export async function terminate(terminated: Terminated): Promise<void> {
  const { target, inner, outer, secrets } = terminated
  outer.on('error', () => outer.destroy())
  const secureContext = await secrets.authority?.contextFor(target.host)
  if (!secureContext || inner.destroyed) return void outer.destroy()
  const socket = new TLSSocket(inner, { isServer: true, secureContext, ALPNProtocols: ALPN })
  socket.on('error', () => socket.destroy())
  const agent = new Agent({ keepAlive: true, maxSockets: 1, maxTotalSockets: 1 })
  let taken = false
  agent.createConnection = () => {
    if (taken) throw new Error('the host ended the connection')
    taken = true
    return outer
  }
  const asked = { ...terminated, agent }
  const server = createServer({ shouldUpgradeCallback: wantsUpgrade }, (request, response) => {
    void answer(request, response, asked)
  })
  server.on('upgrade', (request, connection, head) => {
    void upgrade(request, { connection, head }, asked)
  })
  server.on('clientError', (_error, broken) => void broken.destroy())
  socket.on('close', () => outer.destroy())
  outer.on('close', () => {
    agent.destroy()
    socket.end()
  })
  const late = setTimeout(() => socket.destroy(), NETWORK_LIMITS.dialMs)
  socket.once('close', () => clearTimeout(late))
  // Earlier, its bytes are the handshake’s.
  socket.once('secure', () => {
    clearTimeout(late)
    server.emit('connection', socket)
  })
}

type Asked = Terminated & { readonly agent: Agent }

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  asked: Asked,
): Promise<void> {
  response.on('error', () => response.destroy())
  try {
    passRequest(request, response, { ...(await onward(request, asked)), agent: asked.agent })
  } catch (error) {
    asked.onRefused(error)
    const { status, reason, text } = answerOf(error)
    response.writeHead(status, reason, { 'content-type': 'text/plain', connection: 'close' })
    response.end(text)
  }
}

async function upgrade(
  request: IncomingMessage,
  came: Pick<Upgrade, 'connection' | 'head'>,
  asked: Asked,
): Promise<void> {
  const { connection } = came
  connection.on('error', () => connection.destroy())
  try {
    passUpgrade({ ...came, ...(await onward(request, asked)), request, agent: asked.agent })
  } catch (error) {
    asked.onRefused(error)
    connection.end(answerText(error))
  }
}

/** The request as the host gets it. Rejects with a `Refusal`. */
async function onward(
  request: IncomingMessage,
  { target, secrets, used }: Terminated,
): Promise<Filled> {
  const host = request.headers.host ?? ''
  const named = parseTarget(host, target.port)
  if (named?.host !== target.host || named.port !== target.port) {
    throw new Refusal(
      'other_name',
      `the connection is with ${formatTarget(target)}, and the request is for ${JSON.stringify(host.slice(0, 100))}: connect to that host`,
    )
  }
  const path = request.url ?? '/'
  const filled = await secrets.fill(target, { path, headers: headersOf(request) }, 'tls')
  for (const variable of filled.used) used.add(variable)
  return { ...filled, headers: [...filled.headers, 'Host', host] }
}
