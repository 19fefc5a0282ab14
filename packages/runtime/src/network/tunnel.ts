import type { Duplex } from 'node:stream'
import type { RelayCalls, RelayProtocol } from './connection.ts'
import type { Target } from './host.ts'
import { secureOuter, terminate } from './secrets/terminate.ts'

export interface Tunnel {
  readonly target: Target
  readonly inner: Duplex
  readonly protocol: RelayProtocol
}

/**
 * Opens a tunnel; `begin` says so inside. Where a secret is for the host, and its TLS is to be taken part in, the daemon is both ends of
 * it. Rejects with a `Refusal` before anything was said.
 */
export async function join(calls: RelayCalls, tunnel: Tunnel, begin: () => void): Promise<void> {
  const { target, inner, protocol } = tunnel
  const { secrets } = calls
  const used = new Set<string>()
  const raw = await calls.open(target, inner, protocol, used)
  if (!secrets?.terminates(target)) {
    begin()
    return joinConnections(inner, raw)
  }
  const onRefused = (error: unknown) => calls.refuse(protocol, { target, error })
  const outer = await secureOuter(raw, target, secrets).catch((error) => {
    onRefused(error)
    throw error
  })
  begin()
  await terminate({ target, inner, outer, secrets, onRefused, used })
}

/**
 * Joins two connections until both directions have ended or one of the two is gone. An end of one direction is passed on and leaves
 * the other as it is.
 */
export function joinConnections(one: Duplex, other: Duplex): void {
  one.pipe(other)
  other.pipe(one)
  endTogether(one, other)
}

/** When one is destroyed, so is the other. */
function endTogether(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.on('close', () => {
      // After its own end the other side may still have something to take.
      if (!from.readableEnded || !from.writableFinished) to.destroy()
    })
  }
}
