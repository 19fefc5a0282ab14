import { Agent, type ClientRequest, type ClientRequestArgs } from 'node:http'
import type { Duplex } from 'node:stream'
import { SERVER_LIMITS } from '../limits.ts'
import type { Ports, PortTarget } from './ports.ts'

/** Options of a request to a port. */
export interface PortRequest extends ClientRequestArgs {
  readonly target: PortTarget
}

type OnConnection = (error: Error | null, connection?: Duplex) => void

/**
 * Connections for requests to ports. With `kept` those that answered are kept for the next request for a moment: what is kept uses no
 * sandbox, and is closed with it.
 */
export class PortAgent extends Agent {
  readonly #ports: Ports
  readonly #timers = new WeakMap<object, NodeJS.Timeout>()

  constructor(ports: Ports, { kept }: { readonly kept: boolean }) {
    super({ keepAlive: kept, maxFreeSockets: SERVER_LIMITS.portsKept })
    this.#ports = ports
  }

  override getName(options?: unknown): string {
    const { target } = options as PortRequest
    return `${target.lent.id}:${target.port}`
  }

  override createConnection(options: unknown, done?: unknown): undefined {
    const { target, signal } = options as PortRequest
    this.#ports.connect(target, signal ? { signal } : {}).then(
      (connection) => (done as OnConnection)(null, likeSocket(connection)),
      (error) => (done as OnConnection)(error),
    )
    return undefined
  }

  override keepSocketAlive(connection: Duplex): boolean {
    // Undefined in the types, an answer in fact: false where the server said that it closes soon.
    const mayKeep: unknown = super.keepSocketAlive(connection)
    if (mayKeep === false) return false
    const drop = setTimeout(() => connection.destroy(), SERVER_LIMITS.portKeptMs)
    this.#timers.set(connection, drop.unref())
    return true
  }

  override reuseSocket(connection: Duplex, request: ClientRequest): void {
    super.reuseSocket(connection, request)
    clearTimeout(this.#timers.get(connection))
  }
}

/** What Node's client asks of a socket besides being a stream: there is no system below that could do it. */
function likeSocket(connection: Duplex): Duplex {
  const itself = () => connection
  return Object.assign(connection, {
    setKeepAlive: itself,
    setNoDelay: itself,
    setTimeout: itself,
    ref: itself,
    unref: itself,
  })
}
