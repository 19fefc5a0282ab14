import {
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
  type ServerResponse,
} from 'node:http'
import { SandlotError } from '@sandlot/protocol'
import { GuestLost } from '@sandlot/runtime'
import { errorAnswer, sendAnswer } from '../http/answer.ts'
import { SERVER_LIMITS } from '../limits.ts'
import {
  headersInward,
  headersOutward,
  type OutsideView,
  OWN_ERROR_HEADER,
} from './forward-headers.ts'
import { PortAgent, type PortRequest } from './port-agent.ts'
import type { Ports, PortTarget } from './ports.ts'

/** One request on its way to a port. */
export interface Forwarded {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly target: PortTarget
  /** Path and query, as the server gets them. */
  readonly path: string
  readonly view: OutsideView
}

/** Passes requests on to what listens in sandboxes, and its answers back, each as fast as its other end takes it. */
export class Forwarder {
  readonly #kept: PortAgent
  readonly #fresh: PortAgent

  constructor(ports: Ports) {
    this.#kept = new PortAgent(ports, { kept: true })
    this.#fresh = new PortAgent(ports, { kept: false })
  }

  /** Answers in any case; resolves when the exchange is over, with the failure where we had to answer. */
  async forward(exchange: Forwarded): Promise<SandlotError | undefined> {
    const { incoming, outgoing, target } = exchange
    try {
      await this.#passed(exchange)
      return undefined
    } catch (error) {
      const told = await explained(target, error)
      if (outgoing.headersSent) outgoing.destroy()
      else sendAnswer({ incoming, outgoing }, failedAnswer(told))
      return told
    }
  }

  /** A connection that was kept may have been closed by the server at this very moment: then the request is sent once more. */
  async #passed(exchange: Forwarded): Promise<void> {
    if (!isRepeatable(exchange.incoming)) return await pass(exchange, this.#fresh)
    try {
      await pass(exchange, this.#kept)
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error
      await pass(exchange, this.#fresh)
    }
  }
}

/** The error as an answer that is told from one of the server's. */
export function failedAnswer(error: SandlotError) {
  const answer = errorAnswer(error)
  return { ...answer, headers: { ...answer.headers, [OWN_ERROR_HEADER]: error.code } }
}

/** What a failure on the way means to whoever asked. */
export async function explained({ lent, port }: PortTarget, error: unknown): Promise<SandlotError> {
  if (error instanceof SandlotError) return error
  if (error instanceof GuestLost) return await lent.explain(error)
  const { code, message } = error as NodeJS.ErrnoException
  const why = code?.startsWith('HPE_') ? `its answer is no HTTP (${message})` : message
  return new SandlotError('port_failed', `port ${port} of ${lent.id}: ${why}`, {
    ...(code === 'HPE_HEADER_OVERFLOW' ? { hint: 'Its headers are larger than 16 KiB.' } : {}),
    cause: error as Error,
  })
}

/** The request that goes to the server. */
export function requestTo(
  { incoming, target, path, view }: Omit<Forwarded, 'outgoing'>,
  { agent, more, signal }: { agent: PortAgent; more?: readonly string[]; signal?: AbortSignal },
): ClientRequest {
  const options: PortRequest = {
    agent,
    target,
    path,
    method: incoming.method ?? 'GET',
    headers: [...headersInward(incoming, view), ...(more ?? [])],
    setHost: false,
    maxHeaderSize: SERVER_LIMITS.headerBytes,
    ...(signal ? { signal } : {}),
  }
  return openRequest(options)
}

class StaleConnection extends Error {}

/** Without a body, and of a method that means the same when it comes twice. */
function isRepeatable({ method = '', headers }: IncomingMessage): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || bodyLength(headers) > 0
  return !hasBody && ['GET', 'HEAD', 'OPTIONS'].includes(method)
}

function bodyLength(headers: IncomingMessage['headers']): number {
  return Number(headers['content-length'] ?? 0)
}

function pass(exchange: Forwarded, agent: PortAgent): Promise<void> {
  const { incoming, outgoing } = exchange
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const left = new AbortController()
  const onward = requestTo(exchange, { agent, signal: left.signal })
  const fail = (error: Error) => {
    reject(error)
    left.abort()
  }
  outgoing.setTimeout(SERVER_LIMITS.portRequestIdleMs, () => {
    fail(new SandlotError('timeout', 'nothing of the request or its answer moved for ten minutes'))
  })
  outgoing.once('close', () => {
    resolve()
    if (!outgoing.writableFinished) left.abort()
  })
  let interim = 0
  onward.on('information', () => {
    interim += 1
    if (interim > INTERIM_MAX) fail(new Error('it answers without an end'))
  })
  // Nobody asked for another protocol.
  onward.on('upgrade', (_, connection) => {
    connection.destroy()
    fail(new Error('it speaks another protocol, for which nobody asked'))
  })
  onward.on('response', (answer) => answered(exchange, answer, fail))
  onward.on('error', (error) => {
    // With an answer there, that says how it ends: a server may answer and not read on.
    if (outgoing.headersSent) return
    reject(onward.reusedSocket ? new StaleConnection('', { cause: error }) : error)
  })
  if (outgoing.destroyed) {
    left.abort()
    resolve()
  } else send(incoming, onward)
  return promise
}

/** Answers below 200 that one request may get. */
const INTERIM_MAX = 16

function answered(
  { incoming, outgoing, view }: Forwarded,
  answer: IncomingMessage,
  fail: (error: Error) => void,
): void {
  const { statusCode = 502, statusMessage = '' } = answer
  if (statusCode < STATUS_MIN) {
    fail(new Error('it sent an answer that is none'))
    return
  }
  outgoing.writeHead(
    statusCode,
    statusMessage.replace(NOT_IN_REASON, ' '),
    headersOutward(answer, incoming, view),
  )
  // Events come one at a time, and the first may be long in coming.
  outgoing.flushHeaders()
  answer.on('end', () => {
    if (isCutOff(incoming, answer)) return fail(new Error('it broke off'))
    if (answer.rawTrailers.length > 0) outgoing.addTrailers(pairs(answer.rawTrailers))
    outgoing.end()
  })
  answer.on('error', fail)
  answer.on('close', () => {
    if (!answer.complete) fail(new Error('it broke off'))
  })
  answer.pipe(outgoing, { end: false })
}

/** An answer without a length is as long as its connection: it is whole where that ended, not where it was lost. */
function isCutOff(
  { method }: IncomingMessage,
  { statusCode = 0, headers, socket }: IncomingMessage,
) {
  const hasLength =
    headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
  const hasBody = method !== 'HEAD' && statusCode !== 204 && statusCode !== 304
  return hasBody && !hasLength && !socket.readableEnded
}

/** What is below is no end of a request. */
const STATUS_MIN = 200
/** A server may send it, but it can't be passed on. */
const NOT_IN_REASON = /[^ -~\x80-\xff]/g

/** The body, where there is one. */
function send(incoming: IncomingMessage, onward: ClientRequest): void {
  const { headers } = incoming
  if (headers['transfer-encoding'] === undefined && bodyLength(headers) === 0) {
    onward.end()
    return
  }
  incoming.on('end', () => {
    if (incoming.rawTrailers.length > 0) onward.addTrailers(pairs(incoming.rawTrailers))
  })
  // Cut off: it must not look whole.
  incoming.on('error', (error) => onward.destroy(error))
  incoming.pipe(onward)
}

function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, at) => [
    raw[2 * at] ?? '',
    raw[2 * at + 1] ?? '',
  ])
}
