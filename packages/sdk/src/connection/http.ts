/** Requests over plain HTTP: the routes of the protocol, errors as `SandlotError`, safe repetition. */
import { errorEnvelope, ROUTES, type RouteName, routePath, SandlotError } from '@sandlot/protocol'
import type { Endpoint } from '../config.ts'

export interface RequestOptions {
  readonly parameters?: Record<string, string>
  readonly query?: Record<string, string | number | boolean | undefined>
  readonly json?: unknown
  readonly bytes?: Uint8Array | ReadableStream<Uint8Array>
  readonly signal?: AbortSignal | undefined
}

const ATTEMPTS = 5
const BACKOFF_FIRST_MS = 100
const BACKOFF_MAX_MS = 3_000

/**
 * Sends a request, again where the connection broke or the daemon says that a retry helps: every mutation carries an
 * idempotency key, so it happens once. Streamed bodies are sent once only.
 */
export async function request(
  endpoint: Endpoint,
  route: RouteName,
  options: RequestOptions = {},
): Promise<Response> {
  const headers = new Headers({ authorization: `Bearer ${endpoint.apiKey}` })
  const { method } = ROUTES[route]
  if (options.json !== undefined) headers.set('content-type', 'application/json')
  if (options.bytes !== undefined) headers.set('content-type', 'application/octet-stream')
  if (method !== 'GET') headers.set('idempotency-key', crypto.randomUUID())
  const init: RequestInit & { duplex?: 'half' } = { method, headers }
  if (options.json !== undefined) init.body = JSON.stringify(options.json)
  if (options.bytes !== undefined) Object.assign(init, { body: options.bytes, duplex: 'half' })
  if (options.signal) init.signal = options.signal
  const url = endpoint.url + routePath(route, options.parameters) + queryText(options.query)
  const repeatable = options.bytes === undefined || !(options.bytes instanceof ReadableStream)
  return await repeated(url, init, repeatable ? ATTEMPTS : 1)
}

/** The same, with a JSON answer. */
export async function requestJson<T>(
  endpoint: Endpoint,
  route: RouteName,
  options: RequestOptions = {},
): Promise<T> {
  const answer = await request(endpoint, route, options)
  return (await answer.json()) as T
}

async function repeated(url: string, init: RequestInit, attempts: number): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await fetch(url, init)
      if (answer.ok) return answer
      throw await errorOf(answer, url)
    } catch (thrown) {
      const error = asError(thrown, url, init.signal)
      if (!error.retry || attempt >= attempts) throw error
      await pause(Math.min(BACKOFF_FIRST_MS * 3 ** (attempt - 1), BACKOFF_MAX_MS), init.signal)
    }
  }
}

function asError(
  thrown: unknown,
  url: string,
  signal: AbortSignal | null | undefined,
): Error & { retry?: boolean } {
  if (signal?.aborted) return toError(signal.reason)
  if (thrown instanceof SandlotError) return thrown
  const cause = (thrown as { cause?: { code?: string } }).cause?.code
  const code = cause === 'ECONNREFUSED' || cause === 'ENOTFOUND' ? 'unreachable' : 'connection_lost'
  const message =
    code === 'unreachable'
      ? `no daemon answers at ${new URL(url).origin}`
      : `the connection to ${new URL(url).origin} broke`
  return new SandlotError(code, message, { cause: thrown })
}

async function errorOf(answer: Response, url: string): Promise<SandlotError> {
  const text = await answer.text().catch(() => '')
  try {
    return SandlotError.fromEnvelope(errorEnvelope.parse(JSON.parse(text)))
  } catch {
    return new SandlotError(
      'internal',
      `${url} answered ${answer.status} with no error of Sandlot`,
      {
        hint: 'Is SANDLOT_URL the address of a Sandlot daemon?',
        details: { body: text.slice(0, 500) },
      },
    )
  }
}

function queryText(query: RequestOptions['query']): string {
  const parameters = new URLSearchParams()
  for (const [key, value] of Object.entries(query ?? {}))
    if (value !== undefined) parameters.set(key, String(value))
  return parameters.size === 0 ? '' : `?${parameters}`
}

/** Waits, or throws the signal's reason. */
export function pause(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(toError(signal.reason))
    const stop = () => {
      clearTimeout(timer)
      reject(toError(signal?.reason))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

export function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason ?? 'aborted'))
}
