import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { NetworkLimitsInForce, NetworkProtocol } from '@sandlot/protocol'
import { Semaphore } from '../semaphore.ts'
import { Allowance } from './allowance.ts'
import type { RelayCalls, RelayProtocol } from './connection.ts'
import { type DialMachine, dial } from './dial.ts'
import { formatTarget, type Target } from './host.ts'
import { httpProxy } from './http-proxy.ts'
import type { InnerServer } from './inner-server.ts'
import { NETWORK_LIMITS } from './limits.ts'
import type { ModelEndpoint } from './model-relay.ts'
import { type Open, type OpenedConnection, Outgoing } from './outgoing.ts'
import type { CompiledPolicy, Permit } from './policy.ts'
import { notAllowed, Refusal, type RefusalKind, tooFast, tooMany, tooMuch } from './refusal.ts'
import type { RelaySecrets } from './secrets/relay-secrets.ts'
import { SOCKS_VERSION, serveSocks } from './socks.ts'

/** What became of one request for a connection; told once for each, and once more where a limit cuts it off. */
export interface RelayNews {
  /** `host:port`; empty where none was named. */
  readonly target: string
  readonly protocol: NetworkProtocol
  readonly outcome: 'allowed' | RefusalKind
  /** Of a refusal, for a person. */
  readonly detail?: string
  /** Of one that is allowed. */
  readonly opened?: OpenedConnection
}

export interface RelayOptions {
  readonly policy: CompiledPolicy
  readonly machine: DialMachine
  readonly onNews?: (news: RelayNews) => void
  /** Sent and received before, in the sandbox's life. Default 0. */
  readonly spentBytes?: number
  readonly model?: ModelEndpoint | undefined
  readonly secrets?: RelaySecrets | undefined
  readonly server?: InnerServer | undefined
  readonly limits?: Partial<typeof RELAY_LIMITS>
}

const RELAY_LIMITS = {
  refusals: NETWORK_LIMITS.refusals as number,
  refusalMs: NETWORK_LIMITS.refusalMs as number,
  rateRefusalMs: NETWORK_LIMITS.rateRefusalMs as number,
  dialMs: NETWORK_LIMITS.dialMs as number,
  lookups: NETWORK_LIMITS.lookups as number,
  lookupMs: NETWORK_LIMITS.lookupMs as number,
  requestMs: NETWORK_LIMITS.requestMs as number,
  idleMs: NETWORK_LIMITS.idleMs as number,
}

interface Inner {
  requests: number
  timer?: NodeJS.Timeout
  /** There was no room for it: whatever it asks for, it is told so. */
  readonly beyond: boolean
}

/**
 * The way out of one sandbox: a proxy for HTTP and SOCKS 5 on each connection that its agent brings. It decides by the policy of the
 * moment, resolves, and dials; what is inside knows no policy.
 *
 * ```
 * accept ─▶ request awaited ─ open ─▶ dialling ─▶ joined ─▶ closed
 *                 └─ refused: an answer that says why ───────▶┘
 * ```
 */
export class NetworkRelay implements RelayCalls {
  readonly #options: RelayOptions
  readonly #limits: typeof RELAY_LIMITS
  readonly #machine: DialMachine
  readonly #allowance: Allowance
  readonly #inner = new Map<Duplex, Inner>()
  readonly #outgoing: Outgoing
  #policy: CompiledPolicy
  #closing = new AbortController()
  #server: Server | undefined
  #dialling = 0

  constructor(options: RelayOptions) {
    this.#options = options
    this.#policy = options.policy
    this.#limits = { ...RELAY_LIMITS, ...options.limits }
    const { machine, policy, spentBytes = 0 } = options
    this.#allowance = new Allowance(policy.limits, spentBytes)
    this.#outgoing = new Outgoing({
      allowance: this.#allowance,
      idleMs: this.#limits.idleMs,
      onCutOff: ({ target, protocol }, refusal) => this.#tellRefusal({ target, protocol }, refusal),
    })
    const lookups = new Semaphore(this.#limits.lookups)
    const resolve: DialMachine['resolve'] = (name, signal) =>
      lookups.use(signal, () => machine.resolve(name, signal))
    this.#machine = { ...machine, resolve }
  }

  get model(): ModelEndpoint | undefined {
    return this.#options.model
  }

  get secrets(): RelaySecrets | undefined {
    return this.#options.secrets
  }

  get server(): InnerServer | undefined {
    return this.#options.server
  }

  get policy(): CompiledPolicy {
    return this.#policy
  }

  get limits(): NetworkLimitsInForce {
    return this.#allowance.limits
  }

  /** Connections from inside that are open. */
  get connections(): number {
    return this.#inner.size
  }

  /** Connections to other hosts that are open. */
  get opened(): number {
    return this.#outgoing.size
  }

  /** Bytes to and from other hosts, since the beginning. */
  get bytes(): number {
    return this.#outgoing.bytes
  }

  /** Takes a connection from inside, whatever will be spoken on it. */
  accept(inner: Duplex): void {
    inner.on('error', () => inner.destroy())
    const { connections } = this.limits
    const beyond = this.#inner.size >= connections
    if (this.#inner.size >= connections + this.#limits.refusals) return void inner.destroy()
    // Requests in a row on one connection each listen for its end.
    inner.setMaxListeners(0)
    this.#inner.set(inner, { requests: 0, beyond })
    this.#awaitRequest(inner)
    inner.once('close', () => {
      clearTimeout(this.#inner.get(inner)?.timer)
      this.#inner.delete(inner)
    })
    // It leaves without a request: otherwise its place would be taken until one is due.
    const leave = () => void inner.end()
    inner.once('end', leave)
    inner.once('data', (first: Buffer) => {
      inner.off('end', leave)
      this.#detect(inner, first)
    })
  }

  /** From now on this policy decides. Open connections that it refuses, or whose bytes it counts and nobody does, are closed. */
  setPolicy(policy: CompiledPolicy): void {
    this.#policy = policy
    this.#allowance.set(policy.limits, (this.#options.spentBytes ?? 0) + this.bytes)
    this.#outgoing.closeUnless((open) => this.#stillPermits(open))
  }

  /**
   * Closes all that is open, and ends what is being dialled. New connections are taken as before. Resolves when those to other hosts are
   * closed.
   */
  closeAll(): Promise<void> {
    this.#closing.abort(new Refusal('unreachable', 'the connections of this sandbox were closed'))
    this.#closing = new AbortController()
    this.#outgoing.closeUnless(() => false)
    for (const inner of this.#inner.keys()) inner.destroy()
    return this.#outgoing.closed()
  }

  async open(
    target: Target,
    inner: Duplex,
    protocol: RelayProtocol,
    used: ReadonlySet<string> = new Set(),
  ): Promise<Duplex> {
    try {
      return await this.#connect({ target, inner, protocol, used })
    } catch (error) {
      this.#tellRefusal({ target, protocol }, error)
      throw error
    }
  }

  refuse(protocol: RelayProtocol, of?: { readonly target: Target; readonly error: unknown }): void {
    if (of) {
      this.#tellRefusal({ target: of.target, protocol }, of.error)
      return
    }
    const detail = 'what was asked for names no host'
    this.#tell({ target: '', protocol, outcome: 'invalid', detail })
  }

  occupy(inner: Duplex): (() => void) | undefined {
    const state = this.#inner.get(inner)
    if (!state) return () => {}
    if (state.requests >= NETWORK_LIMITS.pipelined) return undefined
    state.requests += 1
    if (!state.beyond) clearTimeout(state.timer)
    return () => {
      state.requests -= 1
      if (state.requests === 0 && !state.beyond) this.#awaitRequest(inner)
    }
  }

  async #connect(
    wanted: Omit<Open, 'permit' | 'outer' | 'address' | 'isMetered'>,
  ): Promise<Duplex> {
    const { target, inner, protocol } = wanted
    const { connections, connectionsPerMinute, bytes } = this.limits
    const gone = new AbortController()
    const abort = () => gone.abort(new Refusal('unreachable', 'the client left'))
    inner.once('close', abort)
    const signal = AbortSignal.any([gone.signal, this.#closing.signal])
    try {
      if (!this.#allowance.admit()) {
        await pause(this.#limits.rateRefusalMs, undefined, { signal }).catch(() => {})
        throw tooFast(connectionsPerMinute)
      }
      const permit = this.#policy.decide(target)
      if (permit === undefined) throw notAllowed(target, this.#policy.policy)
      if (this.#allowance.isSpent) throw tooMuch(bytes ?? 0)
      const isFull = this.#outgoing.size + this.#dialling >= connections
      if (isFull || this.#inner.get(inner)?.beyond) throw tooMany(connections)
      const outer = await this.#dial(target, permit, signal)
      const { stream, opened } = this.#outgoing.keep({ ...wanted, permit, outer })
      this.#tell({ target: formatTarget(target), protocol, outcome: 'allowed', opened })
      return stream
    } finally {
      inner.off('close', abort)
    }
  }

  async #dial(target: Target, permit: Permit, signal: AbortSignal): Promise<Socket> {
    this.#dialling += 1
    try {
      const { dialMs: timeoutMs, lookupMs } = this.#limits
      const machine = this.#machine
      const outer = await dial(target, { machine, permit, signal, timeoutMs, lookupMs })
      const address = outer.remoteAddress ?? ''
      // It may have changed meanwhile, and the connections be closed.
      if (signal.aborted || !this.#stillPermits({ target, permit, address })) {
        outer.destroy()
        throw notAllowed(target, this.#policy.policy)
      }
      return outer
    } finally {
      this.#dialling -= 1
    }
  }

  #stillPermits({ target, permit, address }: Pick<Open, 'target' | 'permit' | 'address'>): boolean {
    const now = this.#policy.decide(target)
    if (now?.reach !== permit.reach) return false
    // Of what the machine's own proxy reaches, the address is not known here.
    return now.reach === 'machine' || now.admits(address, this.#machine.own)
  }

  #awaitRequest(inner: Duplex): void {
    const state = this.#inner.get(inner)
    if (!state) return
    const { requestMs, refusalMs } = this.#limits
    const waitMs = state.beyond ? refusalMs : requestMs
    state.timer = setTimeout(() => inner.destroy(), waitMs).unref()
  }

  #detect(inner: Duplex, first: Buffer): void {
    inner.pause()
    inner.unshift(first)
    if (first[0] === SOCKS_VERSION) {
      void serveSocks(inner, this)
      return
    }
    this.#server ??= httpProxy(this)
    this.#server.emit('connection', inner)
    inner.resume()
  }

  #tellRefusal({ target, protocol }: Pick<Open, 'target' | 'protocol'>, error: unknown): void {
    const { kind, message } =
      error instanceof Refusal ? error : new Refusal('unreachable', String(error))
    this.#tell({ target: formatTarget(target), protocol, outcome: kind, detail: message })
  }

  #tell(news: RelayNews): void {
    this.#options.onNews?.(news)
  }
}
