/** Requests over plain HTTP: the routes of the protocol, errors as `SandlotError`, safe repetition. */
import { needsKey, ROUTES, type RouteName, routePath, SandlotError } from '@sandlot/protocol'
import type { Address } from './address.ts'
import { clientClosed, isOutage, toError } from './failure.ts'
import { failedAnswer, failedFetch, foreignAnswer } from './http-failure.ts'
import { Outage } from './outage.ts'
import { pause } from './pause.ts'
import { type JoinedSignal, joinSignals } from './signals.ts'
import { checkWholeText } from './whole-text.ts'

export interface RequestOptions {
  readonly parameters?: Record<string, string>
  readonly query?: Record<string, string | number | boolean | readonly string[] | undefined>
  readonly json?: unknown
  /** A body; a function gives it anew for each try. */
  readonly bytes?: Uint8Array | (() => ReadableStream<Uint8Array>)
  readonly signal?: AbortSignal | undefined
}

/** Tries of a request that the daemon answers with an error that may pass. */
const ATTEMPTS = 5
const BACKOFF_FIRST_MS = 100
const BACKOFF_MAX_MS = 3_000
const RETRY_AFTER_MAX_MS = 30_000
/** Until an answer is there, or begins where it is a stream. Nothing that the daemon does for one takes as long. */
const ANSWER_MS = 300_000

/**
 * Sends each request again where the daemon is away or says that a retry helps: every mutation carries the same idempotency key
 * each time, so it happens once. An outage is waited out for two minutes once the daemon was met; before that it is told at once.
 */
export class Http {
  readonly #address: Address
  readonly #closing = new AbortController()

  constructor(address: Address) {
    this.#address = address
  }

  /** The JSON answer. */
  async json<T>(route: RouteName, options: RequestOptions = {}): Promise<T> {
    return await this.#call(route, options, async (answer) => {
      const text = await answer.text()
      try {
        return JSON.parse(text) as T
      } catch {
        throw foreignAnswer(answer.status, new URL(answer.url).origin, text)
      }
    })
  }

  /** For a route without an answer. */
  async send(route: RouteName, options: RequestOptions = {}): Promise<void> {
    await this.#call(route, options, async (answer) => void (await answer.arrayBuffer()))
  }

  /** For a HEAD route: whether it is there. */
  async exists(route: RouteName, options: RequestOptions = {}): Promise<boolean> {
    return await this.#call(route, options, async (answer) => answer.ok, [404])
  }

  /** An answer's bytes as they come. A connection that breaks in the middle is `connection_lost`. */
  async *bytes(route: RouteName, options: RequestOptions = {}): AsyncGenerator<Uint8Array> {
    using joined = joinSignals(options.signal, this.#closing.signal)
    const take = async (answer: Response) => answer.body
    const body = await this.#send(route, options, { joined, take, expected: [] })
    if (!body) return
    try {
      yield* body as unknown as AsyncIterable<Uint8Array>
    } catch (error) {
      if (joined.signal.aborted) throw toError(joined.signal.reason)
      throw failedFetch(error, await this.#address.url())
    }
  }

  /** A path below the daemon's address, as a URL for others. */
  async at(path: string): Promise<string> {
    return (await this.#address.url()) + path
  }

  /** Ends all requests with `cancelled`. */
  close(): void {
    this.#closing.abort(clientClosed())
  }

  async #call<T>(
    route: RouteName,
    options: RequestOptions,
    take: (answer: Response) => Promise<T>,
    expected: readonly number[] = [],
  ): Promise<T> {
    using joined = joinSignals(options.signal, this.#closing.signal)
    return await this.#send(route, options, { joined, take, expected })
  }

  async #send<T>(route: RouteName, options: RequestOptions, handling: Handling<T>): Promise<T> {
    // What is JSON the daemon can refuse by itself; what stands in the address it would get as another text.
    checkWholeText({ ...options.parameters, ...options.query })
    const headers = headersOf(route, options)
    const outage = new Outage(this.#address)
    const { signal } = handling.joined
    for (let attempt = 1; ; attempt++) {
      try {
        signal.throwIfAborted()
        return await this.#once(route, { ...options, headers }, handling)
      } catch (thrown) {
        if (signal.aborted) throw toError(signal.reason)
        if (isOutage(thrown)) await outage.wait(thrown, signal)
        else {
          const mayPass = thrown instanceof SandlotError && thrown.retry && attempt < ATTEMPTS
          if (!mayPass) throw thrown
          const backoffMs = Math.min(BACKOFF_FIRST_MS * 3 ** (attempt - 1), BACKOFF_MAX_MS)
          await pause(Math.max(backoffMs, retryAfterMs(thrown)), signal)
        }
      }
    }
  }

  async #once<T>(
    route: RouteName,
    options: RequestOptions & { readonly headers: Headers },
    { joined, take, expected }: Handling<T>,
  ): Promise<T> {
    const { headers } = options
    const { url: base, apiKey } = needsKey(route)
      ? await this.#address.endpoint()
      : { url: await this.#address.url() }
    if (apiKey !== undefined) headers.set('authorization', `Bearer ${apiKey}`)
    const url = base + routePath(route, options.parameters) + queryText(options.query)
    // Follows the call's signal for as long as the answer is read, and is garbage with it.
    const own = joinSignals(joined.signal)
    const timer = setTimeout(() => own.abort(tooLate(url)), ANSWER_MS)
    try {
      const { method } = ROUTES[route]
      const answer = await fetch(url, { method, headers, signal: own.signal, ...bodyOf(options) })
      if (!answer.ok && !expected.includes(answer.status)) throw await failedAnswer(answer, url)
      this.#address.met()
      return await take(answer)
    } catch (error) {
      throw failedFetch(error, url)
    } finally {
      clearTimeout(timer)
    }
  }
}

interface Handling<T> {
  readonly joined: JoinedSignal
  readonly take: (answer: Response) => Promise<T>
  /** Statuses of a failure that `take` wants to see. */
  readonly expected: readonly number[]
}

/** How long the daemon asks to wait, as far as it is worth waiting. */
function retryAfterMs({ details }: SandlotError): number {
  const afterMs = details?.retryAfterMs
  return typeof afterMs === 'number' ? Math.min(afterMs, RETRY_AFTER_MAX_MS) : 0
}

function tooLate(url: string): SandlotError {
  return new SandlotError('timeout', `${new URL(url).origin} did not answer within 5 minutes`)
}

function headersOf(route: RouteName, { json, bytes }: RequestOptions): Headers {
  const headers = new Headers()
  if (json !== undefined) headers.set('content-type', 'application/json')
  if (bytes !== undefined) headers.set('content-type', 'application/octet-stream')
  const { method } = ROUTES[route]
  if (method !== 'GET' && method !== 'HEAD') headers.set('idempotency-key', crypto.randomUUID())
  return headers
}

function bodyOf({ json, bytes }: RequestOptions): RequestInit {
  if (json !== undefined) return { body: JSON.stringify(json) }
  if (bytes === undefined) return {}
  const body = typeof bytes === 'function' ? bytes() : bytes
  return { body, duplex: 'half' } as RequestInit
}

function queryText(query: RequestOptions['query']): string {
  const parameters = new URLSearchParams()
  for (const [key, value] of Object.entries(query ?? {})) {
    if (Array.isArray(value)) for (const each of value) parameters.append(key, each)
    else if (value !== undefined) parameters.set(key, String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}
