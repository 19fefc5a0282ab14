import { type IncomingMessage, request as overHttp, type ServerResponse } from 'node:http'
import { request as overHttps } from 'node:https'
import { headersOf } from './hop-headers.ts'

/** The one endpoint that a program inside finds on loopback, whatever its policy says of other hosts. */
export interface ModelEndpoint {
  readonly url: URL
  /** Calls wait for it: before, nobody would hear of them. Default: they don't wait. */
  readonly ready?: Promise<unknown>
  /** False: nobody inside may call it now. */
  isOpen(): boolean
  onNews(news: ModelNews): void
}

/** Told of each call, once when it begins and once when it is over. */
export type ModelNews =
  | { readonly state: 'started' }
  /** `failed`: why there is no answer that is of use, and it was not the caller's doing. */
  | { readonly state: 'ended'; readonly failed?: string }

const TOO_MANY = 429
const SERVER_ERROR = 500

/**
 * Passes a request on to the endpoint, as it is but for its host, and the answer back as it comes. What is not below the endpoint's own
 * path is none of the model's.
 */
export async function callModel(
  endpoint: ModelEndpoint,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (endpoint.ready) await endpoint.ready
  if (!response.destroyed) passOn(endpoint, request, response)
}

function passOn(endpoint: ModelEndpoint, request: IncomingMessage, response: ServerResponse): void {
  const { url, onNews } = endpoint
  const target = targetOf(url, request.url ?? '')
  if (target === undefined || !endpoint.isOpen()) {
    const why = target ? 'no model can be called any more' : `the model is below ${url.pathname}`
    response.writeHead(target ? 403 : 404, { 'content-type': 'text/plain', connection: 'close' })
    response.end(`sandlot: ${why}\n`)
    return
  }
  let failed: string | undefined
  onNews({ state: 'started' })
  const open = target.protocol === 'https:' ? overHttps : overHttp
  const onward = open(target, {
    method: request.method ?? 'GET',
    headers: [...headersOf(request), 'Host', target.host],
    setHost: false,
  })
  onward.on('response', (answer) => {
    const { statusCode = 0 } = answer
    if (statusCode >= SERVER_ERROR || statusCode === TOO_MANY) {
      failed = `the model answered ${statusCode} ${answer.statusMessage ?? ''}`.trim()
    }
    response.writeHead(statusCode, headersOf(answer, ['transfer-encoding']))
    answer.pipe(response)
    answer.on('close', () => {
      if (answer.complete) return
      failed ??= 'the model’s answer broke off'
      response.destroy()
    })
  })
  onward.on('upgrade', (_, socket) => void socket.destroy())
  onward.on('error', (error) => {
    failed ??= `the model can’t be reached: ${error.message}`
    if (response.headersSent) return
    response.writeHead(502, { 'content-type': 'text/plain' }).end(`sandlot: ${failed}\n`)
  })
  response.on('close', () => {
    // A caller that leaves before the answer has seen no failure of the model.
    const left = !response.writableFinished && failed === undefined
    onward.destroy()
    onNews({ state: 'ended', ...(left || failed === undefined ? {} : { failed }) })
  })
  request.pipe(onward)
}

/** Where a path of the request leads, if that is the model's. */
function targetOf(base: URL, path: string): URL | undefined {
  if (!path.startsWith('/') || !URL.canParse(path, base.origin)) return undefined
  const target = new URL(path, base.origin)
  const below = base.pathname.replace(/\/+$/, '')
  const isBelow = target.pathname === below || target.pathname.startsWith(`${below}/`)
  return target.origin === base.origin && isBelow ? target : undefined
}
