import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

/**
 * Where a name may lead.
 *
 * | reach | what the policy said | addresses |
 * |---|---|---|
 * | `public` | a name, or `*.` and a name | of the internet, without the machine's own |
 * | `machine` | the packages that the machine uses | those too that only its own network knows; not the machine itself |
 * | `named` | the address itself | that one |
 */
export type Reach = 'public' | 'machine' | 'named'

/** Metadata and host services of clouds that lie between public addresses. */
const SERVICES_OF_CLOUDS = new Set(['168.63.129.16'])

const NEVER_OF_MACHINE: ReadonlySet<string> = new Set([
  'unspecified',
  'loopback',
  'linkLocal',
  'multicast',
  'broadcast',
])

/** Whether an address that a name was resolved to lies within the reach. */
export function isWithin(reach: Reach, address: string, own: () => ReadonlySet<string>): boolean {
  if (reach === 'named') return true
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  const text = parsed.toString()
  if (SERVICES_OF_CLOUDS.has(text) || own().has(text)) return false
  const range = parsed.range()
  if (reach === 'machine') return !NEVER_OF_MACHINE.has(range)
  if (range !== 'unicast') return false
  return parsed.kind() === 'ipv4' || parsed.match(INTERNET)
}

/** What is given out of IPv6; beyond it are forms that stand for other addresses. */
const INTERNET = ipaddr.parseCIDR('2000::/3') as [ipaddr.IPv6, number]

/** Addresses of this machine: what listens on all of them would be reached by each. */
export function ownAddresses(): ReadonlySet<string> {
  const all = Object.values(networkInterfaces()).flatMap((found) => found ?? [])
  return new Set(all.map(({ address }) => ipaddr.process(address.replace(/%.*/, '')).toString()))
}
