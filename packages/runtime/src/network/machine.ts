import type { NetworkPolicy } from '@sandlot/protocol'
import { environmentFor, type NetworkEnvironment, type PackageTools } from './environment.ts'
import { NETWORK_LIMITS } from './limits.ts'
import { MachineNames } from './names.ts'
import { certificateBundle, certificatesIn } from './packages/certificates.ts'
import { textOf } from './packages/machine-files.ts'
import { type PackageMirrors, readPackageMirrors } from './packages/mirrors.ts'
import type { PackageSettings } from './packages/settings.ts'
import { upstreamProxy } from './packages/upstream.ts'
import { type CompiledPolicy, compilePolicy, wantsPackages } from './policy.ts'
import { ownAddresses } from './reach.ts'
import { NetworkRelay, type RelayOptions } from './relay.ts'

interface Known {
  readonly mirrors: PackageMirrors
  readonly tools: PackageTools
  readonly readAtMs: number
}

/**
 * Policies on this machine: what `packages` stands for here, and the way out. One for all sandboxes of a daemon; what it reads of the
 * machine's settings it keeps for a minute.
 */
export class MachineNetwork {
  readonly #settings: PackageSettings
  readonly #names = new MachineNames()
  #known: Promise<Known> | undefined

  constructor(settings: PackageSettings) {
    this.#settings = settings
  }

  /** Hosts that `packages` allows on this machine. */
  async packageMirrors(): Promise<PackageMirrors> {
    return (await this.#read()).mirrors
  }

  async compile(policy: NetworkPolicy): Promise<CompiledPolicy> {
    const mirrors = wantsPackages(policy) ? (await this.packageMirrors()).hosts : []
    return compilePolicy(policy, mirrors)
  }

  /**
   * Variables and files for commands under a policy; `osRelease` is the text of the world's /etc/os-release, `authority` one more
   * certificate that they trust.
   */
  async environment(
    policy: NetworkPolicy,
    osRelease = '',
    authority?: string,
  ): Promise<NetworkEnvironment> {
    const tools = wantsPackages(policy) ? (await this.#read()).tools : NO_TOOLS
    if (authority === undefined) return environmentFor(policy, tools, osRelease)
    const trusted = tools.certificates ?? (await this.trusted()).join('\n')
    const certificates = `${trusted}\n${authority}`
    return environmentFor(policy, { ...tools, certificates }, osRelease)
  }

  /** Certificates that the machine trusts; empty where it has no file of them. */
  async trusted(): Promise<readonly string[]> {
    const { env, certificatesPath } = this.#settings
    const more = [env.SSL_CERT_FILE, env.NODE_EXTRA_CA_CERTS].filter((path) => path !== undefined)
    return await certificatesIn([certificatesPath, ...more])
  }

  async relay(
    policy: NetworkPolicy,
    options: Pick<RelayOptions, 'onNews' | 'model' | 'server' | 'spentBytes' | 'secrets'> = {},
  ): Promise<NetworkRelay> {
    const { env } = this.#settings
    return new NetworkRelay({
      policy: await this.compile(policy),
      machine: {
        resolve: (name, signal) => this.#names.resolve(name, signal),
        own: ownAddresses,
        upstream: (target) => upstreamProxy(env, target),
      },
      ...options,
    })
  }

  async #read(): Promise<Known> {
    const known = await this.#known?.catch(() => undefined)
    if (known && performance.now() - known.readAtMs < NETWORK_LIMITS.settingsMs) return known
    this.#known = this.#readAnew()
    return await this.#known
  }

  async #readAnew(): Promise<Known> {
    const readAtMs = performance.now()
    const settings = this.#settings
    const mirrors = await readPackageMirrors(settings)
    const certificates = await certificateBundle(mirrors, settings)
    const release = await textOf(settings.osReleasePath)
    const codename = /^VERSION_CODENAME="?([^"\n]*)/m.exec(release)?.[1] ?? ''
    const { env, apt } = mirrors
    return { mirrors, tools: { env, apt, certificates, codename }, readAtMs }
  }
}

const NO_TOOLS: PackageTools = { env: {}, certificates: undefined, apt: [], codename: '' }
