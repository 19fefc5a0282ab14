import type { Duplex } from 'node:stream'
import { canonicalHost, formatTarget, type Target } from '../host.ts'
import { endTogether } from '../join.ts'
import { NETWORK_LIMITS } from '../limits.ts'
import { Refusal } from '../refusal.ts'
import { type Beginning, ClientHelloReader } from './client-hello.ts'

/** A fatal alert, `unrecognized_name`: whoever began TLS says why it ended. */
const UNRECOGNIZED_NAME = Buffer.of(0x15, 3, 1, 0, 2, 2, 112)

export interface NamedTunnel {
  /** By name. */
  readonly target: Target
  readonly inner: Duplex
  readonly outer: Duplex
  /** Told why it was cut off. */
  readonly onRefused: (error: unknown) => void
}

/**
 * Joins two connections like `joinConnections`. Where what comes from inside begins with TLS, it has to be for the host that the tunnel is
 * to: behind an address others answer too, which nobody allowed. Until that is clear nothing is sent; what the host says first is
 * passed on.
 */
export function joinNamed({ target, inner, outer, onRefused }: NamedTunnel): void {
  const reader = new ClientHelloReader()
  const separate = endTogether(inner, outer)
  outer.pipe(inner)
  const take = (chunk: Buffer) => {
    const beginning = reader.take(chunk)
    if (beginning === undefined) return
    inner.pause()
    inner.off('data', take).off('end', end)
    const refusal = refusalOf(beginning, target)
    if (!refusal) {
      outer.write(reader.held())
      inner.pipe(outer)
      return
    }
    separate()
    outer.unpipe(inner)
    outer.destroy()
    sendAway(inner)
    onRefused(refusal)
  }
  const end = () => outer.end(reader.held())
  inner.on('data', take).on('end', end)
  inner.resume()
}

function refusalOf(beginning: Beginning, target: Target): Refusal | undefined {
  const tunnel = `the tunnel is to ${formatTarget(target)}, and the TLS in it`
  if (beginning.kind === 'broken') {
    const { why } = beginning
    return new Refusal('other_server', `${tunnel} begins with a hello that can't be read: ${why}`)
  }
  if (beginning.kind === 'other' || beginning.serverName === undefined) return undefined
  const { serverName } = beginning
  if (canonicalHost(serverName)?.host === target.host) return undefined
  const named = JSON.stringify(serverName.slice(0, NETWORK_LIMITS.nameLength))
  return new Refusal('other_server', `${tunnel} is for ${named}: connect to that host`)
}

function sendAway(inner: Duplex): void {
  const late = setTimeout(() => inner.destroy(), NETWORK_LIMITS.refusalMs)
  inner.once('close', () => clearTimeout(late))
  inner.end(UNRECOGNIZED_NAME)
  inner.resume()
}
