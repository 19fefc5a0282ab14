import type { IncomingMessage } from 'node:http'
import { headersOf } from '@sandlot/runtime'

/** How a port is seen from outside, by one request. */
export interface OutsideView {
  readonly port: number
  /** Path on this origin below which the port is; '' where it has the origin for itself. */
  readonly prefix: string
  /** `http` or `https`, as the client sees it. */
  readonly protocol: string
  /** The request brings rights that are the daemon's: they stay here. */
  readonly hasKey: boolean
}

/** Said of the way to the daemon, which the sandbox has no part in. */
const ABOUT_THE_WAY = ['forwarded', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-port', 'via']
const OWN_WORDS = ['x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-prefix']
/**
 * What a server says to a whole host, or of others than itself: with a path of the daemon's origin it speaks for that, and with a name
 * below a domain for its neighbours.
 */
const FOR_MORE_THAN_ITSELF = [
  'strict-transport-security',
  'clear-site-data',
  'alt-svc',
  'public-key-pins',
  'nel',
  'report-to',
  'reporting-endpoints',
]
/** Has the code of an error that is the daemon's answer, and none of the server's. */
export const OWN_ERROR_HEADER = 'sandlot-error'
/** A page on the daemon's own origin is nobody there: no storage, no cookies, no request in the origin's name. */
const SANDBOXED = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'

/**
 * What goes to the server: it finds itself at `localhost:PORT`, where it listens, so that whoever checks hosts and origins lets it pass.
 * The key of the daemon stays outside, and so do cookies of an origin that is not the server's alone.
 */
export function headersInward(request: IncomingMessage, view: OutsideView): string[] {
  const { port, prefix, protocol, hasKey } = view
  const { host: outside = '' } = request.headers
  const shared = prefix !== ''
  const dropped = [
    ...ABOUT_THE_WAY,
    ...OWN_WORDS,
    'expect',
    ...(shared ? ['cookie'] : []),
    ...(hasKey || bringsKey(request) ? ['authorization'] : []),
  ]
  const headers = mapped(headersOf(request, dropped), {
    origin: (value) => (isOn(value, outside) ? inside(port) : value),
    referer: (value) => (isOn(value, outside) ? inside(port) + pathOf(value, prefix) : value),
  })
  headers.push('Host', `localhost:${port}`)
  headers.push('X-Forwarded-Host', outside, 'X-Forwarded-Proto', protocol)
  if (shared) headers.push('X-Forwarded-Prefix', prefix)
  return headers
}

/** What comes of the server: what names it as it sees itself, names it as the client does. */
export function headersOutward(
  answer: IncomingMessage,
  request: IncomingMessage,
  view: OutsideView,
): string[] {
  const { port, prefix } = view
  const { origin } = request.headers
  const shared = prefix !== ''
  const dropped = [
    ...FOR_MORE_THAN_ITSELF,
    // By it the daemon's own answers are told from the server's.
    OWN_ERROR_HEADER,
    'transfer-encoding',
    ...(shared ? ['set-cookie', 'set-cookie2', 'service-worker-allowed'] : []),
  ]
  const place = (value: string) => outside(value, port, prefix)
  const headers = mapped(headersOf(answer, dropped), {
    location: place,
    'content-location': place,
    'set-cookie': (value) => value.replace(/;\s*domain=[^;]*/gi, ''),
    'access-control-allow-origin': (value) =>
      origin !== undefined && value === inside(port) ? origin : value,
  })
  if (shared) headers.push('Content-Security-Policy', SANDBOXED)
  // A URL with a token is told to no other site, unless the server wants it told.
  if (answer.headers['referrer-policy'] === undefined) {
    headers.push('Referrer-Policy', 'same-origin')
  }
  return headers
}

/** Keys and tokens of the daemon (`sk_…`, `st_…`), sent where none is wanted. */
function bringsKey({ headers }: IncomingMessage): boolean {
  return /^Bearer +s[kt]_/i.test(headers.authorization ?? '')
}

function inside(port: number): string {
  return `http://localhost:${port}`
}

function isOn(url: string, host: string): boolean {
  return URL.canParse(url) && new URL(url).host === host.toLowerCase()
}

/** Path and query of an address outside, as the server knows it. */
function pathOf(url: string, prefix: string): string {
  const { pathname, search } = new URL(url)
  return (pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : '/') + search
}

/** An address that the server names: below its own prefix, where it is its own. Relative ones are right as they are. */
function outside(value: string, port: number, prefix: string): string {
  const path = value.replace(
    /^(?:https?:)?\/\/(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(:\d+)?(?=[/?#]|$)/i,
    (whole, _, at) => (at === `:${port}` || (at === undefined && port === 80) ? '' : whole),
  )
  if (path === value && !/^\/(?!\/)/.test(value)) return value
  return prefix + (path.startsWith('/') ? path : `/${path}`)
}

/** Raw headers, with the values of some changed. */
function mapped(
  headers: readonly string[],
  changes: Readonly<Record<string, (value: string) => string>>,
): string[] {
  return headers.map((text, at) => {
    const change = at % 2 === 1 ? changes[(headers[at - 1] ?? '').toLowerCase()] : undefined
    return change ? change(text) : text
  })
}
