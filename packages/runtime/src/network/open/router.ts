import ipaddr from 'ipaddr.js'
import { ownAddresses } from '../reach.ts'
import { type RouterNames, routerNames, tableName } from './names.ts'
import { exists, ip, type Said, say } from './programs.ts'
import { ownText, rulesText } from './rules.ts'

/** The router's end of the pair to the machine; not called as links of sandboxes are. */
const OUT = 'out'

/**
 * The namespace that all sandboxes of a driver are behind. Packets pass it by its own rules, so that a firewall of the machine that is
 * loaded anew takes the way out from sandboxes, not the wall.
 *
 * ```
 * sandbox ── pair ── router: filter ── pair ── machine: filter, translation ── outside
 * ```
 */
export class Router {
  readonly names: RouterNames
  readonly #tag: string
  readonly #addresses: string
  /** Addresses of the machine, as the rules have them. */
  #own = ''

  constructor(tag: string, addresses: string) {
    this.#tag = tag
    this.#addresses = addresses
    this.names = routerNames(tag)
  }

  /** Whether it stands with its rules and its way to the machine; brings addresses of the machine up to date. */
  async isThere(): Promise<boolean> {
    const { namespacePath, uplink } = this.names
    if (!(await exists(namespacePath))) return false
    const listed = await this.run('nft', ['list', 'table', 'inet', tableName(this.#tag)])
    const linked = await ip(['link', 'show', 'dev', uplink])
    if (listed.problem !== undefined || linked.problem !== undefined) return false
    const own = ownIpv4()
    if (own.join() === this.#own) return true
    return (await this.#load(ownText(this.#tag, own), own)) === undefined
  }

  /** Makes it, or what is missing of it: the rules first. What is wrong, where it can't be. */
  async make(): Promise<string | undefined> {
    const { namespace, namespacePath, uplink } = this.names
    const { network, machine, router } = this.#ends()
    if (!(await exists(namespacePath))) {
      const { problem } = await ip(['netns', 'add', namespace])
      if (problem !== undefined) return problem
    }
    const own = ownIpv4()
    const wrong =
      (await this.#load(rulesText(this.#tag, network, { at: 'router', own }), own)) ??
      (await this.run('tee', ['/proc/sys/net/ipv4/ip_forward'], '1')).problem
    if (wrong !== undefined) return wrong
    const isLinked = (await ip(['link', 'show', 'dev', uplink])).problem === undefined
    const pair = `link add ${uplink} type veth peer name ${OUT} netns ${namespace}`
    const outside = [
      ...(isLinked ? [] : [pair]),
      `link set ${uplink} addrgenmode none alias ${namespace}`,
      `addr replace ${machine}/32 dev ${uplink}`,
      `link set ${uplink} up`,
      `route replace ${network} via ${router} dev ${uplink} onlink`,
    ]
    const inside = [
      'link set lo up',
      `link set ${OUT} addrgenmode none`,
      `addr replace ${router}/32 dev ${OUT}`,
      `link set ${OUT} up`,
      `route replace ${machine}/32 dev ${OUT} scope link`,
      `route replace default via ${machine} dev ${OUT}`,
    ]
    return (
      (await ip(['-batch', '-'], outside)).problem ??
      (await this.ip(['-batch', '-'], inside)).problem
    )
  }

  /** True once there is none. */
  async remove(): Promise<boolean> {
    return await removeRouter(this.names)
  }

  /** `ip` on what is in it. */
  ip(args: readonly string[], lines?: readonly string[]): Promise<Said> {
    return ip(['-n', this.names.namespace, ...args], lines)
  }

  /** A program in its network. */
  run(program: string, args: readonly string[], input?: string): Promise<Said> {
    return say('ip', ['netns', 'exec', this.names.namespace, program, ...args], input)
  }

  async #load(text: string, own: readonly string[]): Promise<string | undefined> {
    const { problem } = await this.run('nft', ['-f', '-'], text)
    if (problem === undefined) this.#own = own.join()
    return problem
  }

  /** Addresses that no sandbox is given: the first and the last. */
  #ends(): { readonly network: string; readonly machine: string; readonly router: string } {
    const network = this.#addresses
    const router = ipaddr.IPv4.networkAddressFromCIDR(network).toString()
    const machine = ipaddr.IPv4.broadcastAddressFromCIDR(network).toString()
    return { network, machine, router }
  }
}

/** With it go its rules and its pair. True once there is none. */
export async function removeRouter({ namespace, namespacePath }: RouterNames): Promise<boolean> {
  if (!(await exists(namespacePath))) return true
  await ip(['netns', 'delete', namespace])
  return !(await exists(namespacePath))
}

function ownIpv4(): readonly string[] {
  return [...ownAddresses()].filter((address) => ipaddr.IPv4.isValid(address)).sort()
}
