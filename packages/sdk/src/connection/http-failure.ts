/** Failures of requests over HTTP, in the catalogue's words. */
import { errorEnvelope, SandlotError } from '@sandlot/protocol'

/** How runtimes say that nothing listens there, or that there is no such machine. */
const NOBODY = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
  'FailedToOpenSocket',
])
const BODY_SHOWN_LENGTH = 500

/** What `fetch` threw. */
export function failedFetch(thrown: unknown, url: string): SandlotError {
  if (thrown instanceof SandlotError) return thrown
  const { code, cause } = thrown as { code?: string; cause?: { code?: string } }
  const { origin } = new URL(url)
  if (NOBODY.has(cause?.code ?? code ?? '') || /connection refused/i.test(String(cause))) {
    return new SandlotError('unreachable', `no daemon answers at ${origin}`, { cause: thrown })
  }
  return new SandlotError('connection_lost', `the connection to ${origin} broke`, { cause: thrown })
}

/** What an answer other than success says. */
export async function failedAnswer(answer: Response, url: string): Promise<SandlotError> {
  const text = await answer.text().catch(() => '')
  const parsed = errorEnvelope.safeParse(parseJson(text))
  if (parsed.success) return SandlotError.fromEnvelope(parsed.data)
  return foreignAnswer(answer.status, new URL(url).origin, text)
}

/** An answer that no daemon gave: a proxy on the way may come to its senses, a stranger's refusal stays one. */
export function foreignAnswer(status: number, origin: string, body: string): SandlotError {
  const code = status >= 500 ? 'connection_lost' : 'route_unknown'
  return new SandlotError(code, `${origin} answered ${status} with nothing of Sandlot's`, {
    hint: 'Is SANDLOT_URL the address of a Sandlot daemon?',
    details: { status, body: body.slice(0, BODY_SHOWN_LENGTH) },
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
