/** A host as a network policy names it. */
export interface NetworkHost {
  /** A name, an IPv4 address, or an IPv6 address in brackets, as it was written. */
  readonly host: string
  /** `*.` before it: any name below, at any depth, and not the host itself. */
  readonly below: boolean
  readonly port?: number
}

const NAME_LENGTH_MAX = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const IPV4 = /^[0-9]+(?:\.[0-9]+){3}$/
const SHOWN_MAX = 80

/** An entry of `allow`, or what is wrong with it, in words that name it. */
export function parseNetworkHost(text: string): NetworkHost | { readonly problem: string } {
  const found = parsed(text)
  if (typeof found !== 'string') return found
  const shown = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text
  return { problem: `${JSON.stringify(shown)} ${found}` }
}

function parsed(text: string): NetworkHost | string {
  const odd = oddity(text)
  if (odd) return odd
  const [all, star, host = '', digits] =
    /^(\*\.)?(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/s.exec(text) ?? []
  if (all === undefined) return NO_HOST
  const port = digits === undefined ? undefined : Number(digits)
  if (digits !== undefined && !/^[0-9]{1,5}$/.test(digits)) return NO_PORT
  if (port !== undefined && (port < 1 || port > 65_535)) return NO_PORT
  const below = star !== undefined
  const wrong = host.startsWith('[') ? wrongIpv6(host) : wrongName(host)
  if (wrong) return wrong
  if (below && isAddress(host)) return 'is an address, which takes no star: name each address'
  return { host, below, ...(port === undefined ? {} : { port }) }
}

/** What people write that is more than a host. */
function oddity(text: string): string | undefined {
  if (text === '') return 'is empty: name a host, or take it out'
  const url = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(text)
  if (url) return `is an address of the web: name its host alone, ${JSON.stringify(url[1])}`
  if (/^[0-9a-f.:[\]]+\/[0-9]+$/i.test(text)) return 'is a network: name each address'
  if (text.includes('/')) return 'has a path: a host is allowed with all its paths'
  if (/\s/.test(text)) return 'holds white space: one entry names one host'
  if (text.replace(/^\*\./, '').includes('*')) {
    return 'has a star elsewhere than as its first part: *.example.org is any name below'
  }
  const colons = text.split(':').length - 1
  if (colons > 1 && !text.includes('[')) return 'is no name: an IPv6 address stands in brackets'
  return undefined
}

function wrongIpv6(host: string): string | undefined {
  return canonical(host) === undefined ? 'holds no IPv6 address' : undefined
}

function wrongName(host: string): string | undefined {
  const name = canonical(host)
  if (name === undefined) return NO_HOST
  if (name.length > NAME_LENGTH_MAX) return `is longer than the ${NAME_LENGTH_MAX} of a name`
  if (IPV4.test(name)) return host === name ? undefined : `is the address ${name}: write it so`
  return name.split('.').every((label) => LABEL.test(label)) ? undefined : NO_HOST
}

function isAddress(host: string): boolean {
  return host.startsWith('[') || IPV4.test(canonical(host) ?? '')
}

/** As a browser reads it, without a dot at the end: small letters, ASCII. */
function canonical(host: string): string | undefined {
  if (host === '' || /[%@?#\\]/.test(host)) return undefined
  try {
    return new URL(`http://${host}/`).hostname.replace(/\.$/, '')
  } catch {
    return undefined
  }
}

const NO_HOST =
  'is no host such as api.example.org, *.example.org, api.example.org:443 or [2001:db8::1]:443'
const NO_PORT = 'has no port from 1 to 65535 behind its colon'
