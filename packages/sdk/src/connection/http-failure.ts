/** Failures of requests over HTTP, in the catalogue's words. */
import { ERROR_CATALOGUE, errorEnvelope, SandlotError } from '@sandlot/protocol'

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
  const distrusted = untrusted(cause ?? thrown, origin)
  if (distrusted) return distrusted
  if (NOBODY.has(cause?.code ?? code ?? '') || /connection refused/i.test(String(cause))) {
    return new SandlotError('unreachable', `no daemon answers at ${origin}`, { cause: thrown })
  }
  const { hint: ofTls } = hintOfTls(origin)
  const hint = [ERROR_CATALOGUE.connection_lost.hint, ofTls].filter(Boolean).join(' ')
  return new SandlotError('connection_lost', `the connection to ${origin} broke`, {
    hint,
    cause: thrown,
  })
}

/** A daemon that has a certificate hangs up on whoever speaks none. */
export function hintOfTls(origin: string): { hint?: string } {
  if (!origin.startsWith('http:')) return {}
  return {
    hint: `If the daemon has a certificate (--tls-cert), write its address as ${origin.replace(/^http/, 'https')}.`,
  }
}

/** Someone is there, who speaks no TLS, or has a certificate that this machine has no reason to believe. */
export function untrusted(error: unknown, origin: string): SandlotError | undefined {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string }
  // OpenSSL's words for an answer that is no TLS.
  if (/wrong version number/i.test(message)) {
    return new SandlotError('unreachable', `who answers at ${origin} speaks no TLS`, {
      hint: `Write it as ${origin.replace(/^\w+/, 'http')}, or start the daemon with a certificate: --tls-cert and --tls-key.`,
      cause: error,
    })
  }
  if (!/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)) return undefined
  const text = `the certificate of ${origin} is not trusted: ${message || code}`
  return new SandlotError('unreachable', text, {
    hint: 'Use the name that the certificate has, and where your machine doesn’t know who signed it set NODE_EXTRA_CA_CERTS to a PEM file of theirs.',
    cause: error,
  })
}

/** What an answer other than success says. */
export async function failedAnswer(answer: Response, url: string): Promise<SandlotError> {
  return wordsOf(answer.status, { url, body: await answer.text().catch(() => '') })
}

/** The daemon's own words, where the answer is a daemon's. */
export function wordsOf(
  status: number,
  { url, body }: { readonly url: string; readonly body: string },
): SandlotError {
  const parsed = errorEnvelope.safeParse(parseJson(body))
  if (parsed.success) return SandlotError.fromEnvelope(parsed.data)
  return foreignAnswer(status, new URL(url).origin, body)
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
