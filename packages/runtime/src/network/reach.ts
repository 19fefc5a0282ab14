import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

/**
 * Where a target may lead.
 *
 * | reach | what the policy said | addresses |
 * |---|---|---|
 * | `public` | a name, or `*.` and a name | of the internet, without the machine's own |
 * | `network` | a network of addresses | those of it, without the machine's own, loopback, link-local and metadata |
 * | `machine` | the packages that the machine uses | those too that only its own network knows; not the machine itself |
 * | `named` | the address itself | that one |
 */
export type Reach = 'public' | 'network' | 'machine' | 'named'

/** Metadata and host services of clouds that lie between public or private addresses. */
const SERVICES_OF_CLOUDS = new Set(['168.63.129.16', 'fd00:ec2::254', 'fd20:ce::254'])

const OF_MACHINE_AND_WIRE: ReadonlySet<string> = new Set([
  'unspecified',
  'loopback',
  'linkLocal',
  'multicast',
  'broadcast',
])

/** Whether an address that is about to be dialled lies within the reach. */
export function isWithin(reach: Reach, address: string, own: () => ReadonlySet<string>): boolean {
  if (reach === 'named') return true
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  const text = parsed.toString()
  if (SERVICES_OF_CLOUDS.has(text) || own().has(text)) return false
  const range = parsed.range()
  if (reach === 'public') {
    return range === 'unicast' && (parsed.kind() === 'ipv4' || parsed.match(INTERNET))
  }
  if (OF_MACHINE_AND_WIRE.has(range)) return false
  // A translator on the way would go on to the address inside.
  const inside = parsed.kind() === 'ipv6' ? ipv4Inside(parsed as ipaddr.IPv6) : undefined
  return inside === undefined || isWithin(reach, inside, own)
}

/** What is given out of IPv6; beyond it are forms that stand for other addresses. */
const INTERNET = ipaddr.parseCIDR('2000::/3') as [ipaddr.IPv6, number]

/** The IPv4 address that an address of NAT64, 6to4, Teredo or the old compatible form stands for. */
function ipv4Inside(address: ipaddr.IPv6): string | undefined {
  const bytes = address.toByteArray()
  const four = (at: number, mask = 0) =>
    bytes
      .slice(at, at + 4)
      .map((byte) => byte ^ mask)
      .join('.')
  switch (address.range()) {
    case 'rfc6052':
      return four(12)
    case '6to4':
      return four(2)
    case 'teredo':
      return four(12, 0xff)
    default:
      return bytes.slice(0, 12).every((byte) => byte === 0) ? four(12) : undefined
  }
}

/** Addresses of this machine: what listens on all of them would be reached by each. */
export function ownAddresses(): ReadonlySet<string> {
  const all = Object.values(networkInterfaces()).flatMap((found) => found ?? [])
  return new Set(all.map(({ address }) => ipaddr.process(address.replace(/%.*/, '')).toString()))
}
