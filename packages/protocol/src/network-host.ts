import { addressBits, isBeyondNetworks } from './network-range.ts'

/** A host as a network policy names it. */
export interface NetworkHost {
  /** A name, an IPv4 address, or an IPv6 address in brackets, as it was written; of a network its first address. */
  readonly host: string
  /** `*.` before it: any name below, at any depth, and not the host itself. */
  readonly below: boolean
  /** Of a network: how many bits of its address count. */
  readonly prefix?: number
  /** Default: 80 and 443. */
  readonly ports?: PortRange
}

/** Both are in it. */
export interface PortRange {
  readonly first: number
  readonly last: number
}

const NAME_LENGTH_MAX = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const IPV4 = /^[0-9]+(?:\.[0-9]+){3}$/
const SHOWN_MAX = 80
const PORT_MAX = 65_535

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
  const [all, star, host = '', width, digits] =
    /^(\*\.)?(\[[^\]]*\]|[^:[\]/]*)(?:\/([^:]*))?(?::(.*))?$/s.exec(text) ?? []
  if (all === undefined) return NO_HOST
  const ports = digits === undefined ? undefined : portsOf(digits)
  if (typeof ports === 'string') return ports
  const named = { below: star !== undefined, ...(ports ? { ports } : {}) }
  const network = networkOf(host, width)
  if (typeof network === 'string') return network
  if (network) return named.below ? NO_STAR : { ...network, ...named }
  const wrong = host.startsWith('[') ? wrongIpv6(host) : wrongName(host)
  if (wrong) return wrong
  return named.below && isAddress(host) ? NO_STAR : { host, ...named }
}

/** `5432`, `8000-8100` or `*`. */
function portsOf(text: string): PortRange | string {
  if (text === '*') return { first: 1, last: PORT_MAX }
  const [all, from, to = from] = /^([0-9]{1,5})(?:-([0-9]{1,5}))?$/.exec(text) ?? []
  const [first, last] = [Number(from), Number(to)]
  if (all === undefined || first < 1 || last > PORT_MAX) return NO_PORT
  return first <= last ? { first, last } : `has ports from ${first} to ${last}: the lower one first`
}

/** `10.1.2.0` and `24`, or `[fd00::/8]`; undefined where it is no network. */
function networkOf(
  host: string,
  width: string | undefined,
): { readonly host: string; readonly prefix: number } | string | undefined {
  const [, inside, behind] = /^\[([^\]/]*)\/([^\]]*)\]$/.exec(host) ?? []
  if (inside === undefined && width === undefined) return undefined
  if (host.startsWith('[') && width !== undefined) {
    return 'has its width behind the bracket: [fd00::/8] holds it inside'
  }
  const address = inside === undefined ? host : `[${inside}]`
  const wrong = inside === undefined ? wrongName(address) : wrongIpv6(address)
  const bits = wrong ? undefined : addressBits(canonical(address) ?? '')
  if (!bits) return wrong ?? 'has a width behind a name: a network is one of addresses'
  const text = behind ?? width ?? ''
  const prefix = Number(text)
  if (!/^[0-9]{1,3}$/.test(text) || prefix > bits.length) {
    return `has no width from 0 to ${bits.length} behind its slash`
  }
  if ((bits.value & ((1n << BigInt(bits.length - prefix)) - 1n)) !== 0n) {
    return `is no network: below its ${prefix} bits its address has more; write its first address, or /${bits.length}`
  }
  return isBeyondNetworks(bits, prefix) ? BEYOND : { host: address, prefix }
}

/** What people write that is more than a host. */
function oddity(text: string): string | undefined {
  if (text === '') return 'is empty: name a host, or take it out'
  const url = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(text)
  if (url) return `is an address of the web: name its host alone, ${JSON.stringify(url[1])}`
  if (/^[0-9a-f:]+:[0-9a-f:]*\/[0-9]+$/i.test(text)) {
    return 'is a network of IPv6: write it in brackets, [fd00::/8]'
  }
  if (text.includes('/') && !/^(?:\*\.)?\[?[0-9a-fx.:]+\]?\/[0-9]*\]?(?::.*)?$/i.test(text)) {
    return 'has a path: a host is allowed with all its paths'
  }
  if (/\s/.test(text)) return 'holds white space: one entry names one host'
  if (/\*/.test(text.replace(/^\*\./, '').replace(/:\*$/, ''))) {
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
  if (host === '' || /[%@?#\\/]/.test(host)) return undefined
  try {
    return new URL(`http://${host}/`).hostname.replace(/\.$/, '')
  } catch {
    return undefined
  }
}

const NO_HOST =
  'is no host such as api.example.org, *.example.org, api.example.org:443, 10.1.2.0/24:5432 or [2001:db8::1]:443'
const NO_PORT =
  'has no port from 1 to 65535 behind its colon, no range such as 8000-8100, and no star for all'
const NO_STAR = 'is an address, which takes no star: name the address, or a network as 10.1.2.0/24'
const BEYOND =
  'is of addresses that a network entry never reaches (loopback, link-local, multicast, IPv4 inside IPv6): name the address itself'
