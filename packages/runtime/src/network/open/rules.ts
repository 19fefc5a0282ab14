import ipaddr from 'ipaddr.js'
import { NETWORK_LIMITS } from '../limits.ts'
import { linkPrefix, tableName } from './names.ts'

/**
 * What no sandbox reaches, whatever leads there: private networks, those of carriers, loopback, link-local with the metadata of
 * clouds, what has no one receiver, and the host service of a cloud that lies between public addresses.
 */
export const DENIED_NETWORKS: readonly string[] = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16', '224.0.0.0/3', '168.63.129.16/32'],
]

/** Why a packet of a sandbox was dropped, as its counter is called. */
export const DROPS = ['spoofed', 'denied', 'machine', 'sandbox', 'ipv6', 'inbound'] as const
export type Drop = (typeof DROPS)[number]

/** Links, and where packets from them were not let through to, each for a while. */
export const REFUSED = 'refused'

/** Where a table stands: in the router's namespace, or behind it on the machine. */
export type Place = { readonly at: 'machine' } | RouterPlace
interface RouterPlace {
  readonly at: 'router'
  /** Addresses of the machine, which the router can't tell from others. */
  readonly own: readonly string[]
}

/**
 * The rules for all sandboxes of one driver, known by the names of their links; nothing in a sandbox reaches them. Loaded whole or not at
 * all, also over themselves. They stand twice: in the namespace of the router, where no firewall of the machine throws them away, and on
 * the machine, whose one link they know, and which alone knows all that is the machine. Without the latter no answer comes.
 *
 * | packet | then |
 * |---|---|
 * | from a sandbox, with an address that isn't its own | dropped |
 * | … to a denied network, before any translation of the machine and after it | dropped |
 * | … to an address of the machine, its daemon's API too | dropped |
 * | … to another sandbox, or of IPv6 | dropped |
 * | … to anywhere else | goes out under the machine's address |
 * | to a sandbox, as an answer | goes in |
 * | to a sandbox, otherwise, the machine's own too | dropped |
 */
export function rulesText(tag: string, addresses: string, place: Place): string {
  const table = tableName(tag)
  const links = `"${linkPrefix(tag)}*"`
  const inRouter = place.at === 'router'
  const counters = DROPS.map((name) => `  counter ${name} {}`).join('\n')
  return `table inet ${table}
delete table inet ${table}
table inet ${table} {
${counters}
  set denied {
    type ipv4_addr
    flags interval
    auto-merge
    elements = { ${deniedBeside(addresses).join(', ')} }
  }
${inRouter ? routerSets(place.own) : ''}
  chain before {
    type filter hook prerouting priority raw; policy accept;
    iifname ${links} jump sent
  }
  chain sent {
    meta nfproto ipv6 counter name ipv6 drop
    fib saddr . iif oif missing counter name spoofed drop
    ${inRouter ? noted('denied') : ''}
    ip daddr @denied counter name denied drop
    fib daddr type != unicast counter name machine drop
    ${inRouter ? `${noted('own')}\n    ip daddr @own counter name machine drop` : ''}
  }
  chain input {
    type filter hook input priority filter - 5; policy accept;
    iifname ${links} counter name machine drop
  }
  chain forward {
    type filter hook forward priority filter - 5; policy accept;
    iifname ${links} jump out
    oifname ${links} jump in
  }
  chain out {
    oifname ${links} counter name sandbox drop
    ip daddr @denied counter name denied drop
  }
  chain in {
    ct state established,related accept
    counter name inbound drop
  }
  chain output {
    type filter hook output priority filter - 5; policy accept;
    oifname ${links} ct state related accept
    oifname ${links} counter name inbound drop
  }
${inRouter ? '' : masquerade(addresses, links)}
}
`
}

function routerSets(own: readonly string[]): string {
  const elements = own.length > 0 ? `elements = { ${own.join(', ')} }` : ''
  return `  set own {
    type ipv4_addr
    ${elements}
  }
  set ${REFUSED} {
    type ifname . ipv4_addr . inet_proto . inet_service
    size ${NETWORK_LIMITS.refusedTargets}
    flags dynamic, timeout
    timeout ${NETWORK_LIMITS.refusedMs / 1_000}s
  }`
}

/** A rule of its own: where the set is full it ends early, and the one behind it still drops. */
function noted(set: 'denied' | 'own'): string {
  return `ip daddr @${set} meta l4proto { tcp, udp } update @${REFUSED} { iifname . ip daddr . meta l4proto . th dport }`
}

/** Other addresses of the machine from now on. */
export function ownText(tag: string, own: readonly string[]): string {
  const set = `inet ${tableName(tag)} own`
  const added = own.length > 0 ? `add element ${set} { ${own.join(', ')} }\n` : ''
  return `flush set ${set}\n${added}`
}

function masquerade(addresses: string, links: string): string {
  return `  chain after {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${addresses} oifname != ${links} masquerade
  }`
}

/** The sandboxes' own network is never to be reached either, wherever it lies. */
function deniedBeside(addresses: string): readonly string[] {
  return [...DENIED_NETWORKS, addresses]
}

/** IPv4 networks that hold enough addresses for sandboxes. */
export function isUsableNetwork(text: string): boolean {
  if (!ipaddr.IPv4.isValidCIDR(text)) return false
  const [, bits] = ipaddr.IPv4.parseCIDR(text)
  return (
    bits >= 8 &&
    bits <= 28 &&
    ipaddr.IPv4.networkAddressFromCIDR(text).toString() === text.split('/')[0]
  )
}
