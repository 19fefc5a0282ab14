import { type PortRange, parseNetworkHost } from '@sandlot/protocol'
import ipaddr from 'ipaddr.js'
import { canonicalHost, type Target } from './host.ts'
import type { Reach } from './reach.ts'

/** One entry of `allow`, or a mirror, in the form that decides. */
export interface Entry {
  /** As it was written. */
  readonly rule: string
  readonly host: string
  /** Any name below `host`, at any depth, and not `host` itself. */
  readonly below: boolean
  /** Of a network of addresses. */
  readonly network?: readonly [ipaddr.IPv4 | ipaddr.IPv6, number]
  readonly ports: readonly PortRange[]
  readonly reach: Reach
}

const WEB: readonly PortRange[] = [
  { first: 80, last: 80 },
  { first: 443, last: 443 },
]

/** Undefined for what is no entry: nothing is allowed by it. */
export function entryOf(text: string): Entry | undefined {
  const named = parseNetworkHost(text)
  const canonical = 'problem' in named ? undefined : canonicalHost(named.host)
  if ('problem' in named || !canonical) return undefined
  const { below, prefix, ports } = named
  const reach = prefix !== undefined ? 'network' : canonical.isAddress ? 'named' : 'public'
  return {
    ...{ rule: text, host: canonical.host, below, reach },
    ...(prefix === undefined ? {} : { network: [ipaddr.parse(canonical.host), prefix] }),
    ports: ports ? [ports] : WEB,
  }
}

/** Whether a target is what the entry names. */
export function matches(
  entry: Entry,
  target: Pick<Target, 'host' | 'isAddress' | 'port'>,
): boolean {
  const { host, below, ports, network } = entry
  if (!ports.some(({ first, last }) => first <= target.port && target.port <= last)) return false
  if (network) return target.isAddress && isIn(network, target.host)
  return below ? !target.isAddress && target.host.endsWith(`.${host}`) : target.host === host
}

function isIn([base, prefix]: NonNullable<Entry['network']>, address: string): boolean {
  const parsed = ipaddr.process(address)
  // The types let both be of either kind.
  return parsed.kind() === base.kind() && parsed.match(base as ipaddr.IPv4, prefix)
}
