import { Resolver } from 'node:dns/promises'
import ipaddr from 'ipaddr.js'
import { canonicalHost } from './host.ts'
import { NETWORK_LIMITS } from './limits.ts'
import { textOf } from './packages/machine-files.ts'

/** An address of a name. */
export interface ResolvedAddress {
  readonly address: string
  readonly family: number
}

export interface MachineNamesOptions {
  readonly hostsPath?: string
  readonly resolvPath?: string
  /** Default: those of the machine. */
  readonly servers?: readonly string[]
  /** How long one is waited for, the first time that it is asked. Default: `NETWORK_LIMITS.nameServerMs`. */
  readonly serverMs?: number
}

interface Settings {
  readonly hosts: ReadonlyMap<string, readonly ResolvedAddress[]>
  readonly domains: readonly string[]
  readonly readAtMs: number
}

const LOOPBACK: readonly ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

const DOMAINS_MAX = 6

/** What a name server says of a name that it has no address of. */
const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA'])

/**
 * Names as this machine knows them: its hosts file, then its name servers, asked by messages of this process. The C library's
 * own way would take one of the few threads that all file operations share for as long as a server is silent.
 */
export class MachineNames {
  readonly #options: MachineNamesOptions
  #settings: Promise<Settings> | undefined

  constructor(options: MachineNamesOptions = {}) {
    this.#options = options
  }

  /** Addresses of a host in its one spelling; empty where there is none. Rejects where no server says either. */
  async resolve(name: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
    const { hosts, domains } = await this.#read()
    const known = hosts.get(name)
    if (known) return known
    if (name === 'localhost' || name.endsWith('.localhost')) return LOOPBACK
    const below = name.includes('.') ? [] : domains.map((domain) => `${name}.${domain}`)
    for (const candidate of [...below, name]) {
      const found = await this.#ask(candidate, signal)
      if (found.length > 0) return found
    }
    return []
  }

  async #ask(name: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
    signal.throwIfAborted()
    // One for each question: it knows the servers of this moment, and can be given up alone.
    const resolver = new Resolver({
      timeout: this.#options.serverMs ?? NETWORK_LIMITS.nameServerMs,
      tries: NETWORK_LIMITS.nameServerTries,
    })
    if (this.#options.servers) resolver.setServers(this.#options.servers)
    const cancel = () => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const answers = await Promise.allSettled([
        resolver.resolve4(name).then(withFamily(4), unlessNone),
        resolver.resolve6(name).then(withFamily(6), unlessNone),
      ])
      signal.throwIfAborted()
      const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
      const failed = answers.find((answer) => answer.status === 'rejected')
      if (found.length === 0 && failed) throw failed.reason
      return found
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  async #read(): Promise<Settings> {
    const settings = await this.#settings
    if (settings && performance.now() - settings.readAtMs < NETWORK_LIMITS.hostsMs) return settings
    this.#settings = this.#readAnew()
    return await this.#settings
  }

  async #readAnew(): Promise<Settings> {
    const readAtMs = performance.now()
    const { hostsPath = '/etc/hosts', resolvPath = '/etc/resolv.conf' } = this.#options
    const [hosts, resolv] = await Promise.all([textOf(hostsPath), textOf(resolvPath)])
    return { hosts: parseHosts(hosts), domains: searchDomains(resolv), readAtMs }
  }
}

function withFamily(family: number) {
  return (addresses: readonly string[]) => addresses.map((address) => ({ address, family }))
}

function unlessNone(error: unknown): ResolvedAddress[] {
  if (NO_ADDRESS.has((error as { code?: string }).code ?? '')) return []
  throw error
}

function parseHosts(text: string): Map<string, ResolvedAddress[]> {
  const hosts = new Map<string, ResolvedAddress[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (!ipaddr.isValid(address) || address.includes('%')) continue
    const family = address.includes(':') ? 6 : 4
    for (const name of names) {
      const host = canonicalHost(name)?.host
      if (host) hosts.set(host, [...(hosts.get(host) ?? []), { address, family }])
    }
  }
  return hosts
}

/** The last line of the two kinds holds. */
function searchDomains(text: string): string[] {
  const lines = [...text.matchAll(/^(?:search|domain)[ \t]+(.*)$/gm)]
  const domains = (lines.at(-1)?.[1] ?? '').trim().split(/\s+/)
  return domains.flatMap((domain) => canonicalHost(domain)?.host ?? []).slice(0, DOMAINS_MAX)
}
