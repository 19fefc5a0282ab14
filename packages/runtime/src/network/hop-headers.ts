import type { IncomingMessage } from 'node:http'

/** Of one hop alone, or written anew for the next one. */
const OWN_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'host',
])

/** The headers of a message that are passed on. */
export function headersOf(message: IncomingMessage, without: readonly string[] = []): string[] {
  const named = (message.headers.connection ?? '').toLowerCase().split(',')
  const dropped = new Set([...OWN_HEADERS, ...without, ...named.map((name) => name.trim())])
  const { rawHeaders } = message
  return rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && !dropped.has(name.toLowerCase()) ? [name, rawHeaders[at + 1] ?? ''] : [],
  )
}
