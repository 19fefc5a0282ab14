import type { Duplex } from 'node:stream'
import type { GuestWait } from '../guest/guest.ts'
import { GuestError } from '../guest/guest-error.ts'
import { type GuestPort, type GuestPorts, isReachedByLoopback } from '../guest/guest-ports.ts'
import { unlessAborted } from '../unless-aborted.ts'
import { connectionPair } from './connection-pair.ts'

/** What a program does with each connection to its port. */
export type FakeServer = (connection: Duplex) => void

interface Listener {
  readonly port: number
  readonly address: string
  readonly server: FakeServer
}

/** Ports without frames: what listens are commands of the script. */
export class FakePorts implements GuestPorts {
  readonly #alive: () => void
  readonly #relayPort: () => number | undefined
  readonly #listeners = new Set<Listener>()
  readonly #open = new Set<Duplex>()
  #changed = Promise.withResolvers<void>()

  constructor(options: {
    /** Throws when the sandbox is gone. */
    readonly alive: () => void
    readonly relayPort: () => number | undefined
  }) {
    this.#alive = options.alive
    this.#relayPort = options.relayPort
  }

  /** For commands: they listen until they end, and their connections end with them. */
  listen(listener: Listener, signal: AbortSignal): void {
    this.#listeners.add(listener)
    signal.addEventListener('abort', () => this.#listeners.delete(listener), { once: true })
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  async connect(port: number, wait: GuestWait = {}): Promise<Duplex> {
    this.#check(port)
    wait.signal?.throwIfAborted()
    const found = [...this.#listeners].find((each) => reaches(each, port))
    if (!found) throw new GuestError('refused', `nothing listens on port ${port}`)
    const [inside, outside] = connectionPair()
    this.#open.add(outside)
    outside.once('close', () => this.#open.delete(outside))
    found.server(inside)
    return outside
  }

  async list(): Promise<readonly GuestPort[]> {
    this.#alive()
    return [...this.#listeners]
      .map(({ port, address }) => ({ port, address }))
      .sort((one, other) => one.port - other.port)
  }

  async wait(port: number, { signal, timeoutMs }: GuestWait = {}): Promise<void> {
    this.#check(port)
    const late = timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)]
    const ends = AbortSignal.any([...late, ...(signal ? [signal] : [])])
    while (![...this.#listeners].some((each) => reaches(each, port))) {
      await unlessAborted(ends, this.#changed.promise)
      this.#alive()
    }
  }

  /** For the guest: it is lost. */
  reset(error: Error): void {
    this.#listeners.clear()
    for (const connection of this.#open) connection.destroy(error)
    this.#changed.resolve()
  }

  #check(port: number): void {
    this.#alive()
    const isPort = Number.isInteger(port) && port >= 1 && port <= 65_535
    if (!isPort || port === this.#relayPort()) throw new GuestError('invalid', `port ${port}`)
  }
}

function reaches({ port, address }: Listener, wanted: number): boolean {
  return port === wanted && isReachedByLoopback(address)
}
