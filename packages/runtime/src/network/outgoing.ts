import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Allowance } from './allowance.ts'
import type { RelayProtocol } from './connection.ts'
import type { Target } from './host.ts'
import { Metered } from './metered.ts'
import type { Permit } from './policy.ts'
import { Refusal } from './refusal.ts'

/** A connection to another host, and what it is for. */
export interface Open {
  readonly target: Target
  readonly permit: Permit
  readonly protocol: RelayProtocol
  /** What was dialled. */
  readonly address: string
  readonly inner: Duplex
  readonly outer: Socket
  /** Variables whose secrets go over it, complete when it closes. */
  readonly used: ReadonlySet<string>
  /** Its bytes are counted while they pass. */
  readonly isMetered: boolean
}

export interface OpenedConnection {
  /** The entry of the policy that allows it, or `packages`. */
  readonly rule: string
  readonly address: string
  /** Resolves when it is closed. */
  readonly closed: Promise<ClosedConnection>
}

export interface ClosedConnection {
  readonly sentBytes: number
  readonly receivedBytes: number
  readonly durationMs: number
  /** Variables whose secrets were put in. */
  readonly secrets?: string[]
}

interface OutgoingParts {
  readonly allowance: Allowance
  /** Nothing moves on it for so long: it is closed. */
  readonly idleMs: number
  /** A limit was met while it was open. */
  readonly onCutOff: (open: Open, refusal: Refusal) => void
}

/** The connections of one sandbox to other hosts that are open. */
export class Outgoing {
  readonly #parts: OutgoingParts
  readonly #open = new Map<Open, Promise<ClosedConnection>>()
  #closedBytes = 0

  constructor(parts: OutgoingParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#open.size
  }

  /** Sent and received, since the beginning. */
  get bytes(): number {
    return [...this.#open.keys()].reduce(
      (sum, { outer }) => sum + bytesOf(outer),
      this.#closedBytes,
    )
  }

  /** Takes one that was made. What passes through `stream` is what the limits let pass. */
  keep(found: Omit<Open, 'address' | 'isMetered'>): {
    readonly stream: Duplex
    readonly opened: OpenedConnection
  } {
    const { inner, outer, permit } = found
    const { allowance, idleMs } = this.#parts
    const address = outer.remoteAddress ?? ''
    const startedMs = performance.now()
    const open: Open = { ...found, address, isMetered: allowance.metersBytes }
    const { promise: closed, resolve } = Promise.withResolvers<ClosedConnection>()
    this.#open.set(open, closed)
    outer.setTimeout(idleMs, () => {
      outer.destroy()
      inner.destroy()
    })
    outer.on('error', () => outer.destroy())
    outer.once('close', () => {
      this.#open.delete(open)
      this.#closedBytes += bytesOf(outer)
      const { bytesWritten: sentBytes, bytesRead: receivedBytes } = outer
      const durationMs = Math.round(performance.now() - startedMs)
      const secrets = [...open.used]
      const more = secrets.length > 0 ? { secrets } : {}
      resolve({ sentBytes, receivedBytes, durationMs, ...more })
    })
    const stream = open.isMetered ? this.#metered(open) : outer
    return { stream, opened: { rule: permit.rule, address, closed } }
  }

  /** Closes those that are not to stay, and those whose bytes are to be counted now and are not. */
  closeUnless(stays: (open: Open) => boolean): void {
    const { metersBytes } = this.#parts.allowance
    for (const open of this.#open.keys()) {
      if ((open.isMetered || !metersBytes) && stays(open)) continue
      open.inner.destroy()
      open.outer.destroy()
    }
  }

  /** Resolves when those that are open now are closed. */
  async closed(): Promise<void> {
    await Promise.all(this.#open.values())
  }

  #metered(open: Open): Duplex {
    const metered = new Metered(open.outer, this.#parts.allowance)
    metered.on('error', (error) => {
      if (error instanceof Refusal) this.#parts.onCutOff(open, error)
      open.inner.destroy()
    })
    return metered
  }
}

function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten
}
