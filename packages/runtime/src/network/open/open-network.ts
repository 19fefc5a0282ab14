import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import ipaddr from 'ipaddr.js'
import { DriverError } from '../../driver-error.ts'
import { NETWORK_LIMITS } from '../limits.ts'
import { openNameServers } from './name-servers.ts'
import { type OpenNames, openNames, tableName } from './names.ts'
import { exists, ip, nft } from './programs.ts'
import { type RefusedOnLink, RefusedPacketsReader } from './refused-packets.ts'
import { Router } from './router.ts'
import { isUsableNetwork, rulesText } from './rules.ts'
import { linkBytes } from './traffic.ts'

export interface OpenNetworkSettings {
  /** IPv4 network that the sandboxes have their addresses of; nothing else on the machine uses it. */
  readonly addresses: string
  /** Whom sandboxes ask for names. Default: those of the machine that are public. */
  readonly nameServers?: readonly string[]
}

export const FORWARD_MEND = 'sysctl -w net.ipv4.ip_forward=1'
const HINT = 'run `sandlot doctor`: its line `open network` says what this machine lacks'

/**
 * Real interfaces for sandboxes. Each has a network namespace of its own with one end of a pair; what goes through the other end
 * is filtered by the router that has it, and by the machine, and leaves under the machine's address. The router's table of routes says
 * who has which address.
 */
export class OpenNetworks {
  readonly #tag: string
  readonly #settings: OpenNetworkSettings
  readonly #router: Router
  readonly #refused: RefusedPacketsReader
  #isLoaded = false
  #guarding: Promise<void> | undefined

  constructor(tag: string, settings: OpenNetworkSettings) {
    checkSettings(settings)
    this.#tag = tag
    this.#settings = settings
    this.#router = new Router(tag, settings.addresses)
    this.#refused = new RefusedPacketsReader(this.#router, tag)
  }

  names(hostId: string): OpenNames {
    return openNames(this.#tag, hostId)
  }

  /** Content of /etc/resolv.conf. */
  async nameServers(): Promise<string> {
    const servers = await openNameServers(this.#settings.nameServers)
    return servers.map((server) => `nameserver ${server}\n`).join('')
  }

  /**
   * Router and rules are in force, also where somebody has taken them away meanwhile, such as a firewall that was loaded anew. Fails with
   * `unsupported` where the machine can't.
   */
  guard(): Promise<void> {
    this.#guarding ??= this.#guard().finally(() => {
      this.#guarding = undefined
    })
    return this.#guarding
  }

  /**
   * Makes the namespace of a sandbox, and in it the interface that the runtime takes over. Fails with `unsupported` where the machine
   * can't; what was begun is removed by `remove`.
   */
  async make(hostId: string): Promise<OpenNames> {
    await this.guard()
    const names = this.names(hostId)
    const { gateway, pick } = addressesOf(this.#settings.addresses)
    const { problem } = await ip(['netns', 'add', names.namespace])
    if (problem !== undefined) throw failed(problem)
    await batch(this.#router.names.namespace, [
      `link add ${names.link} type veth peer name eth0 netns ${names.namespace}`,
      `link set ${names.link} addrgenmode none alias ${names.namespace}`,
      `addr add ${gateway}/32 dev ${names.link}`,
      `link set ${names.link} up`,
    ])
    const address = await this.#takeAddress(names.link, pick)
    const inside = [
      'link set lo up',
      'link set eth0 addrgenmode none',
      `addr add ${address}/32 dev eth0`,
      'link set eth0 up',
      `route add ${gateway} dev eth0 scope link`,
      `route add default via ${gateway} dev eth0`,
    ]
    await batch(names.namespace, inside)
    return names
  }

  /** Sent and received by one sandbox, by the kernel's counters; 0 where there is none. */
  async bytesOf(hostId: string): Promise<number> {
    return await linkBytes(this.#router, this.names(hostId).link)
  }

  /** Where packets were not let through to, by the links of sandboxes, that was not told yet. */
  async refusedPackets(): Promise<readonly RefusedOnLink[]> {
    return this.#isLoaded ? await this.#refused.next() : []
  }

  /** Of one sandbox; idempotent. False: something of it is still there. */
  async remove(hostId: string): Promise<boolean> {
    return await removeInterface(this.names(hostId))
  }

  /** Takes the rules away, where there are any. */
  async dispose(): Promise<void> {
    if (!this.#isLoaded) return
    await this.#router.remove()
    await removeRules(this.#tag)
  }

  /** The route is the claim: a second one to the same address is refused. */
  async #takeAddress(link: string, pick: () => string): Promise<string> {
    let said = ''
    for (let tries = 0; tries < NETWORK_LIMITS.addressTries; tries++) {
      const address = pick()
      const { problem } = await this.#router.ip(['route', 'add', `${address}/32`, 'dev', link])
      if (problem === undefined) return address
      said = problem
      if (!/file exists/i.test(problem)) break
    }
    throw failed(`no address of ${this.#settings.addresses} could be had: ${said}`)
  }

  async #guard(): Promise<void> {
    const isThere =
      this.#isLoaded && (await areRulesThere(this.#tag)) && (await this.#router.isThere())
    if (isThere) return
    this.#isLoaded = true
    if (!(await forwards())) throw failed(`this machine passes no packets on: ${FORWARD_MEND}`)
    const rules = rulesText(this.#tag, this.#settings.addresses, { at: 'machine' })
    const problem = (await nft(['-f', '-'], rules)).problem ?? (await this.#router.make())
    if (problem !== undefined) throw failed(problem)
  }
}

async function batch(namespace: string, lines: readonly string[]): Promise<void> {
  const { problem } = await ip(['-n', namespace, '-batch', '-'], lines)
  if (problem !== undefined) throw failed(problem)
}

/** @throws DriverError `unsupported` that names the setting */
function checkSettings({ addresses, nameServers = [] }: OpenNetworkSettings): void {
  const wrong = nameServers.find((server) => !ipaddr.IPv4.isValidFourPartDecimal(server))
  const message = !isUsableNetwork(addresses)
    ? `SANDLOT_OPEN_ADDRESSES: ${JSON.stringify(addresses)} is no IPv4 network of 8 to 28 bits`
    : wrong === undefined
      ? undefined
      : `SANDLOT_OPEN_NAME_SERVERS: ${JSON.stringify(wrong)} is no IPv4 address`
  if (message === undefined) return
  throw new DriverError('unsupported', message, {
    hint: 'write a network such as 100.121.0.0/16, and addresses with commas between them',
  })
}

/** A namespace, with both ends of its pair. True once there is none. */
export async function removeInterface({
  namespace,
  namespacePath,
  link,
  router,
}: OpenNames): Promise<boolean> {
  if (!(await exists(namespacePath))) return true
  // What still holds the namespace has no way out at once.
  await ip(['-n', router, 'link', 'delete', link])
  await ip(['netns', 'delete', namespace])
  return !(await exists(namespacePath))
}

export async function areRulesThere(tag: string): Promise<boolean> {
  return (await nft(['list', 'table', 'inet', tableName(tag)])).problem === undefined
}

/** True once there are none. */
export async function removeRules(tag: string): Promise<boolean> {
  await nft(['delete', 'table', 'inet', tableName(tag)])
  return !(await areRulesThere(tag))
}

/** Whether the machine passes on what comes from one interface to another. */
export async function forwards(): Promise<boolean> {
  return (await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8').catch(() => '0')).trim() === '1'
}

function addressesOf(network: string): { gateway: string; pick: () => string } {
  const [base, bits] = ipaddr.IPv4.parseCIDR(network)
  const first = Buffer.from(base.octets).readUInt32BE()
  const count = 2 ** (32 - bits)
  return { gateway: text(first + 1), pick: () => text(first + randomInt(2, count - 1)) }
}

function text(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.')
}

function failed(why: string, cause?: unknown): DriverError {
  const message = `the sandbox’s own interface could not be made: ${why}`
  return new DriverError('unsupported', message, { hint: HINT, cause })
}
