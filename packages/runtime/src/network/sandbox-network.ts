import type { NetworkLimitsInForce, NetworkPolicy } from '@sandlot/protocol'
import type { Guest, GuestWait } from '../guest/guest.ts'
import { GuestError } from '../guest/guest-error.ts'
import { type NetworkEnvironment, NOTHING } from './environment.ts'
import { NETWORK_LIMITS } from './limits.ts'
import type { MachineNetwork } from './machine.ts'
import type { ModelEndpoint } from './model-relay.ts'
import { wantsPackages } from './policy.ts'
import type { NetworkRelay, RelayOptions } from './relay.ts'

export interface SandboxNetworkOptions
  extends Pick<RelayOptions, 'onNews' | 'model' | 'server' | 'spentBytes' | 'secrets'> {
  readonly machine: MachineNetwork
  readonly policy: NetworkPolicy
  /** The world whose commands the policy is for. */
  readonly world: string
}

const OS_RELEASE_BYTES = 65_536

/**
 * The way out of one sandbox, from the daemon's side. The sandbox was started with `relayPort: NETWORK_LIMITS.port`. Whoever runs commands in
 * it adds `env` to theirs, below what a user has set:
 *
 * ```
 * const network = await SandboxNetwork.open(sandbox.guest, { machine, policy: 'packages', world: 'main' })
 * await sandbox.guest.exec.run({ …, env: Object.entries({ ...network.env, ...env }) })
 * network.close()
 * ```
 */
export class SandboxNetwork {
  readonly #guest: Guest
  readonly #machine: MachineNetwork
  readonly #relay: NetworkRelay
  #environment: NetworkEnvironment = NOTHING
  #isCutOff = false

  private constructor(guest: Guest, machine: MachineNetwork, relay: NetworkRelay) {
    this.#guest = guest
    this.#machine = machine
    this.#relay = relay
  }

  /** Takes the sandbox's connections, also those of one that an earlier daemon had; then `enter`. */
  static async open(
    guest: Guest,
    options: SandboxNetworkOptions,
    wait: GuestWait = {},
  ): Promise<SandboxNetwork> {
    const { machine, policy, world, onNews, model, ...relayed } = options
    const reached = () => {
      network.#isCutOff = false
    }
    // What waited for a daemon comes with the answer to `listen`, and is decided before whoever awaits that goes on.
    const relay = await machine.relay(policy, {
      ...relayed,
      onNews(news) {
        if (news.outcome === 'allowed') reached()
        onNews?.(news)
      },
      ...(model ? { model: heard(model, reached) } : {}),
    })
    const network = new SandboxNetwork(guest, machine, relay)
    guest.relay.onConnection = (connection) => relay.accept(connection)
    const { connections, unanswered } = await guest.relay.listen(NETWORK_LIMITS.port, wait)
    // Between its calls of a model a program may keep a connection that it never uses again.
    network.#isCutOff = (model ? unanswered : connections) > 0
    await network.enter(policy, world, wait)
    return network
  }

  /** For commands from now on; proxies alone where the policy names hosts, nothing where it is `none`. */
  get env(): Readonly<Record<string, string>> {
    return { ...this.#environment.env, ...this.#relay.secrets?.env }
  }

  /** As the relay itself has it. */
  get inForce(): { readonly policy: NetworkPolicy; readonly limits: NetworkLimitsInForce } {
    const { policy, limits } = this.#relay
    return { policy: policy.policy, limits }
  }

  /** Connections to other hosts that are open. */
  get connections(): number {
    return this.#relay.opened
  }

  /** Bytes to and from other hosts, since `open`. */
  get bytes(): number {
    return this.#relay.bytes
  }

  /**
   * Connections broke off with an earlier daemon, and nothing was reached since: what runs inside may have failed of that. False again
   * once it has reached something.
   */
  get isCutOff(): boolean {
    return this.#isCutOff
  }

  /**
   * From now on this policy decides, and connections that it refuses are closed. The files that its commands need are written into the
   * world, which has to be open.
   */
  async enter(policy: NetworkPolicy, world: string, wait: GuestWait = {}): Promise<void> {
    this.#relay.setPolicy(await this.#machine.compile(policy))
    const release = wantsPackages(policy) ? await this.#osRelease(world, wait) : ''
    const authority = this.#relay.secrets?.authority?.certificate
    const environment = await this.#machine.environment(policy, release, authority)
    for (const { path, content } of environment.files) {
      const options = { mode: 0o644, parents: true }
      await this.#guest.files.write(world, path, Buffer.from(content), options, wait)
    }
    this.#environment = environment
  }

  /**
   * Closes all connections, as before a checkpoint; later ones are taken as before. A request to the guest that is made after this is
   * answered when they are reset inside.
   */
  closeAll(): void {
    void this.#relay.closeAll()
  }

  /** Takes no connections any more, and closes those that are open; resolves when they are. Idempotent. */
  close(): Promise<void> {
    this.#guest.relay.onConnection = undefined
    return this.#relay.closeAll()
  }

  async #osRelease(world: string, wait: GuestWait): Promise<string> {
    try {
      const range = { length: OS_RELEASE_BYTES }
      const file = await this.#guest.files.read(world, '/etc/os-release', range, wait)
      return Buffer.concat(await Array.fromAsync(file.content)).toString()
    } catch (error) {
      // An image without it is no Debian.
      if (error instanceof GuestError) return ''
      throw error
    }
  }
}

/** Told of each call that had an answer. */
function heard(model: ModelEndpoint, answered: () => void): ModelEndpoint {
  return {
    ...model,
    onNews(news) {
      if (news.state === 'ended' && news.failed === undefined) answered()
      model.onNews(news)
    },
  }
}
