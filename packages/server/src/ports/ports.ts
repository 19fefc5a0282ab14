import type { Duplex } from 'node:stream'
import { type PortView, SandlotError } from '@sandlot/protocol'
import {
  GuestError,
  type GuestPort,
  type GuestWait,
  isReachedByLoopback,
  NETWORK_LIMITS,
} from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import type { Lent } from '../node/lend.ts'

/** A port of a sandbox that is lent for the time of its use. */
export interface PortTarget {
  readonly lent: Lent
  readonly port: number
}

/** The connections of this daemon to ports of sandboxes: counted, and closed with the daemon. */
export class Ports {
  readonly #of = new Map<string, Connections>()
  #closed = false

  /** Of all sandboxes. */
  get connections(): number {
    return [...this.#of.values()].reduce((sum, { open }) => sum + open.size, 0)
  }

  /**
   * A connection to what listens on the port. It is destroyed with the sandbox.
   * @throws SandlotError `port_refused` with what does listen, `port_limit`, `timeout`, and how the sandbox ended
   */
  async connect({ lent, port }: PortTarget, wait: GuestWait = {}): Promise<Duplex> {
    checkPort(port)
    if (this.#closed) throw new SandlotError('draining', 'the daemon is stopping')
    const those = this.#of.get(lent.id) ?? { open: new Set(), making: 0 }
    if (those.open.size + those.making >= SERVER_LIMITS.portConnections) throw tooMany(lent.id)
    this.#of.set(lent.id, those)
    those.making += 1
    try {
      const connection = await lent.guest.ports.connect(port, wait)
      those.open.add(connection)
      connection.once('close', () => {
        those.open.delete(connection)
        this.#tidy(lent.id)
      })
      if (this.#closed) connection.destroy()
      return connection
    } catch (error) {
      if (wait.signal?.aborted) throw wait.signal.reason
      throw await explain({ lent, port }, error)
    } finally {
      those.making -= 1
      this.#tidy(lent.id)
    }
  }

  /** Closes all. Idempotent. */
  close(): void {
    this.#closed = true
    for (const { open } of this.#of.values()) for (const each of open) each.destroy()
  }

  #tidy(sandbox: string): void {
    const those = this.#of.get(sandbox)
    if (those && those.making === 0 && those.open.size === 0) this.#of.delete(sandbox)
  }
}

interface Connections {
  readonly open: Set<Duplex>
  making: number
}

/** What listens in a sandbox, a port once. */
export async function listPorts({ guest }: Lent, wait: GuestWait = {}): Promise<PortView[]> {
  const byPort = Map.groupBy(await guest.ports.list(wait), ({ port }) => port)
  return [...byPort].map(([port, listeners]) => ({
    port,
    addresses: listeners.map(({ address }) => address),
    reachable: listeners.some(({ address }) => isReachedByLoopback(address)),
  }))
}

/** @throws SandlotError `invalid_request` for what is no port that a sandbox's programs may have */
export function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new SandlotError('invalid_request', `port: ${port} is not one of 1 to 65535`)
  }
  if (port === NETWORK_LIMITS.port) {
    throw new SandlotError('invalid_request', `port: ${port} is the way out of the sandbox`, {
      hint: 'Nothing inside can listen there. Name the port of a server of yours.',
    })
  }
}

async function explain({ lent, port }: PortTarget, error: unknown): Promise<SandlotError> {
  if (!(error instanceof GuestError)) return await lent.explain(error)
  if (error.code === 'limit') return tooMany(lent.id)
  if (error.code !== 'refused') return await lent.explain(error)
  const heard = await lent.guest.ports.list({ timeoutMs: SERVER_LIMITS.portLookMs }).catch(() => [])
  const hint = hintOf(port, heard)
  return new SandlotError('port_refused', `nothing listens on port ${port} of ${lent.id}`, {
    ...(hint === undefined ? {} : { hint }),
    details: { port, listening: [...new Set(heard.map((each) => each.port))] },
  })
}

/** What a person does next, where it is known what listens. */
function hintOf(port: number, heard: readonly GuestPort[]): string | undefined {
  const elsewhere = heard.find((each) => each.port === port)
  if (elsewhere) {
    return `Something listens on it at ${elsewhere.address} alone: let it listen on 127.0.0.1 or 0.0.0.0.`
  }
  const reached = heard.filter(({ address }) => isReachedByLoopback(address))
  const ports = [...new Set(reached.map((each) => each.port))].slice(0, PORTS_SHOWN)
  if (ports.length === 0) return undefined
  return `In this sandbox something listens on ${ports.join(', ')}. A server that is just starting may need a moment: \`sandbox.ports.wait(${port})\`.`
}

const PORTS_SHOWN = 8

function tooMany(sandbox: string): SandlotError {
  const message = `${SERVER_LIMITS.portConnections} connections to ports of ${sandbox} are open`
  return new SandlotError('port_limit', message)
}
