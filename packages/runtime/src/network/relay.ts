import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Semaphore } from '../semaphore.ts'
import type { RelayCalls, RelayProtocol } from './connection.ts'
import { type DialMachine, dial } from './dial.ts'
import { formatTarget, type Target } from './host.ts'
import { httpProxy } from './http-proxy.ts'
import { NETWORK_LIMITS } from './limits.ts'
import type { ModelEndpoint } from './model-relay.ts'
import type { CompiledPolicy } from './policy.ts'
import type { Reach } from './reach.ts'
import { notAllowed, Refusal, type RefusalKind } from './refusal.ts'
import { SOCKS_VERSION, serveSocks } from './socks.ts'

/** What became of one request for a connection; told once for each. */
export interface RelayNews {
  /** `host:port`; empty where none was named. */
  readonly target: string
  readonly protocol: RelayProtocol
  readonly outcome: 'allowed' | RefusalKind
}

export interface RelayOptions {
  readonly policy: CompiledPolicy
  readonly machine: DialMachine
  readonly onNews?: (news: RelayNews) => void
  readonly model?: ModelEndpoint | undefined
  readonly limits?: Partial<typeof RELAY_LIMITS>
}

const RELAY_LIMITS = {
  connections: NETWORK_LIMITS.connections as number,
  refusals: NETWORK_LIMITS.refusals as number,
  refusalMs: NETWORK_LIMITS.refusalMs as number,
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

interface Open {
  readonly target: Target
  readonly reach: Reach
  readonly inner: Duplex
  readonly outer: Socket
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
  readonly #inner = new Map<Duplex, Inner>()
  readonly #open = new Set<Open>()
  #policy: CompiledPolicy
  #closing = new AbortController()
  #server: Server | undefined
  #dialling = 0
  #closedBytes = 0

  constructor(options: RelayOptions) {
    this.#options = options
    this.#policy = options.policy
    this.#limits = { ...RELAY_LIMITS, ...options.limits }
    const { machine } = options
    const lookups = new Semaphore(this.#limits.lookups)
    const resolve: DialMachine['resolve'] = (name, signal) =>
      lookups.use(signal, () => machine.resolve(name, signal))
    this.#machine = { ...machine, resolve }
  }

  get model(): ModelEndpoint | undefined {
    return this.#options.model
  }

  get policy(): CompiledPolicy {
    return this.#policy
  }

  /** Connections from inside that are open. */
  get connections(): number {
    return this.#inner.size
  }

  /** Bytes to and from other hosts, since the beginning. */
  get bytes(): number {
    return [...this.#open].reduce((sum, { outer }) => sum + bytesOf(outer), this.#closedBytes)
  }

  /** Takes a connection from inside, whatever will be spoken on it. */
  accept(inner: Duplex): void {
    inner.on('error', () => inner.destroy())
    const { connections, refusals } = this.#limits
    const beyond = this.#inner.size >= connections
    if (this.#inner.size >= connections + refusals) return void inner.destroy()
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

  /** From now on this policy decides. Open connections that it refuses are closed. */
  setPolicy(policy: CompiledPolicy): void {
    this.#policy = policy
    for (const { target, reach, inner, outer } of this.#open) {
      if (policy.decide(target) === reach) continue
      inner.destroy()
      outer.destroy()
    }
  }

  /** Closes all that is open, and ends what is being dialled. New connections are taken as before. */
  closeAll(): void {
    this.#closing.abort(new Refusal('unreachable', 'the connections of this sandbox were closed'))
    this.#closing = new AbortController()
    for (const { outer } of this.#open) outer.destroy()
    for (const inner of this.#inner.keys()) inner.destroy()
  }

  async open(target: Target, inner: Duplex, protocol: RelayProtocol): Promise<Duplex> {
    try {
      const outer = await this.#connect(target, inner)
      this.#tell(target, protocol, 'allowed')
      return outer
    } catch (error) {
      this.#tell(target, protocol, error instanceof Refusal ? error.kind : 'unreachable')
      throw error
    }
  }

  refuse(protocol: RelayProtocol): void {
    this.#options.onNews?.({ target: '', protocol, outcome: 'invalid' })
  }

  occupy(inner: Duplex): () => void {
    const state = this.#inner.get(inner)
    if (!state) return () => {}
    state.requests += 1
    if (!state.beyond) clearTimeout(state.timer)
    return () => {
      state.requests -= 1
      if (state.requests === 0 && !state.beyond) this.#awaitRequest(inner)
    }
  }

  async #connect(target: Target, inner: Duplex): Promise<Duplex> {
    const reach = this.#policy.decide(target)
    if (reach === undefined) throw notAllowed(target, this.#policy.policy)
    const isFull = this.#open.size + this.#dialling >= this.#limits.connections
    if (isFull || this.#inner.get(inner)?.beyond) throw tooMany(this.#limits.connections)
    const gone = new AbortController()
    const abort = () => gone.abort(new Refusal('unreachable', 'the client left'))
    inner.once('close', abort)
    this.#dialling += 1
    try {
      const signal = AbortSignal.any([gone.signal, this.#closing.signal])
      const { dialMs: timeoutMs, lookupMs } = this.#limits
      const machine = this.#machine
      const outer = await dial(target, { machine, reach, signal, timeoutMs, lookupMs })
      // It may have changed meanwhile, and the connections be closed.
      if (signal.aborted || this.#policy.decide(target) !== reach) {
        outer.destroy()
        throw notAllowed(target, this.#policy.policy)
      }
      this.#keep({ target, reach, inner, outer })
      return outer
    } finally {
      this.#dialling -= 1
      inner.off('close', abort)
    }
  }

  #keep(open: Open): void {
    const { inner, outer } = open
    this.#open.add(open)
    outer.setTimeout(this.#limits.idleMs, () => {
      outer.destroy()
      inner.destroy()
    })
    outer.on('error', () => outer.destroy())
    outer.once('close', () => {
      this.#open.delete(open)
      this.#closedBytes += bytesOf(outer)
    })
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

  #tell(target: Target, protocol: RelayProtocol, outcome: RelayNews['outcome']): void {
    this.#options.onNews?.({ target: formatTarget(target), protocol, outcome })
  }
}

function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten
}

function tooMany(connections: number): Refusal {
  return new Refusal('limit', `${connections} connections of this sandbox are open already`)
}
