import ipaddr from 'ipaddr.js'
import { NETWORK_LIMITS } from './limits.ts'

/** A target in its one spelling: policies compare these, and these are dialled. */
export interface Target {
  /** A name in small letters, ASCII, without the dot at its end; or an address. */
  readonly host: string
  readonly isAddress: boolean
  readonly port: number
}

/** One authority: a name, or an address in brackets where it has colons, and a port. */
const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^\s:[\]@/\\?#%]+)(?::([0-9]{1,5}))?$/i

/** `host:port` of a request; undefined where it is none. */
export function parseTarget(authority: string, portDefault?: number): Target | undefined {
  const [, host = '', digits] = AUTHORITY.exec(authority) ?? []
  const port = digits === undefined ? portDefault : Number(digits)
  return port === undefined ? undefined : targetOf(host, port)
}

/** A host in any spelling, with `[ ]` or without, and a port. */
export function targetOf(host: string, port: number): Target | undefined {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return undefined
  const canonical = canonicalHost(host)
  return canonical && { ...canonical, port }
}

/**
 * `EXAMPLE.org.` and `example.org`, `bücher.example` and `xn--bcher-kva.example`, `0x7f.1` and `127.0.0.1`, `[::ffff:127.0.0.1]`
 * and `127.0.0.1`: each pair is one host.
 */
export function canonicalHost(text: string): Pick<Target, 'host' | 'isAddress'> | undefined {
  const bare = text.startsWith('[') ? text.slice(1, -1) : text
  if (bare.includes(':')) {
    return ipaddr.IPv6.isValid(bare) && !bare.includes('%') ? address(bare) : undefined
  }
  if (/[\s@/\\?#%[\]]/.test(bare)) return undefined
  let host: string
  try {
    host = new URL(`http://${bare}/`).hostname
  } catch {
    return undefined
  }
  if (host.endsWith('.')) host = host.slice(0, -1)
  if (host === '' || host.length > NETWORK_LIMITS.nameLength) return undefined
  if (host.split('.').some((label) => label === '')) return undefined
  return ipaddr.IPv4.isValidFourPartDecimal(host) ? address(host) : { host, isAddress: false }
}

export function formatTarget({ host, port }: Target): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

function address(text: string): Pick<Target, 'host' | 'isAddress'> {
  return { host: ipaddr.process(text).toString(), isAddress: true }
}
