import type { IncomingMessage, ServerResponse } from 'node:http'
import { SandlotError } from '@sandlot/protocol'
import { toSandlotError } from '../failure.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { redacted } from '../redact.ts'
import type { Bytes } from './call.ts'

/**
 * Sends a stream as it comes, no faster than the client takes it. Nothing is sent before the first chunk is there, so that a
 * failure until then is an ordinary error answer; a later one breaks the connection off, which no client can take for the end.
 */
export async function sendStream(
  outgoing: ServerResponse,
  stream: Bytes,
  options: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly signal: AbortSignal
  },
): Promise<void> {
  const iterator = stream[Symbol.asyncIterator]()
  const first = await iterator.next()
  try {
    outgoing.writeHead(options.status, options.headers)
    for (let next = first; !next.done; next = await iterator.next()) {
      if (!outgoing.write(next.value)) await drained(outgoing, options.signal)
    }
    outgoing.end()
  } catch (error) {
    outgoing.destroy(error as Error)
    throw error
  } finally {
    await iterator.return?.()
  }
}

/** One JSON value a line. */
export async function* asLines(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const value of values) yield Buffer.from(`${JSON.stringify(value)}\n`)
}

export interface Answer {
  readonly status: number
  readonly body: string | null
  readonly headers: Record<string, string>
}

export function jsonAnswer(status: number, value: unknown): Answer {
  return {
    status,
    body: JSON.stringify(value),
    headers: { 'content-type': 'application/json; charset=utf-8' },
  }
}

/** The one shape of every failure. */
export function errorAnswer(error: unknown): Answer {
  const known = toSandlotError(error)
  const envelope = known.toEnvelope()
  envelope.error.message = redacted(envelope.error.message)
  const answer = jsonAnswer(known.status, envelope)
  if (known.code === 'unauthorized') answer.headers['www-authenticate'] = 'Bearer'
  if (known.retry) answer.headers['retry-after'] = String(retryAfterSeconds(known))
  return answer
}

/** Sends a whole answer. */
export function sendAnswer(
  exchange: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse },
  answer: Answer,
): void {
  const { incoming, outgoing } = exchange
  const headers: Record<string, string | number> = { ...answer.headers }
  if (answer.body !== null) headers['content-length'] = Buffer.byteLength(answer.body)
  // What is left of a body that nobody wants can't be told from the next request.
  if (!incoming.complete) headers.connection = 'close'
  outgoing.writeHead(answer.status, headers).end(answer.body ?? undefined)
  if ((answer.body?.length ?? 0) > SERVER_LIMITS.watchedAnswerBytes) giveUpUntaken(outgoing)
}

/** Whole seconds, as the header has them. */
function retryAfterSeconds({ details }: SandlotError): number {
  const afterMs = details?.retryAfterMs
  return typeof afterMs === 'number' ? Math.max(1, Math.ceil(afterMs / 1_000)) : 1
}

/** An answer that nobody reads stays in memory as long as its connection. */
function giveUpUntaken(outgoing: ServerResponse): void {
  if (outgoing.writableFinished) return
  const stalled = setTimeout(() => outgoing.destroy(), SERVER_LIMITS.stallMs)
  outgoing.once('close', () => clearTimeout(stalled))
}

function drained(outgoing: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stalled = setTimeout(
      () => settle(new SandlotError('timeout', 'the client took nothing of the answer for long')),
      SERVER_LIMITS.stallMs,
    )
    const onDrain = () => settle()
    const onGone = () => settle(new SandlotError('cancelled', 'the client is gone'))
    function settle(error?: Error): void {
      clearTimeout(stalled)
      outgoing.off('drain', onDrain).off('close', onGone)
      signal.removeEventListener('abort', onGone)
      if (error) reject(error)
      else resolve()
    }
    outgoing.on('drain', onDrain).on('close', onGone)
    signal.addEventListener('abort', onGone)
    if (outgoing.destroyed || signal.aborted) onGone()
  })
}
