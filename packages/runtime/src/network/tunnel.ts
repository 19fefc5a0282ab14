import type { Duplex } from 'node:stream'
import type { RelayCalls, RelayProtocol } from './connection.ts'
import type { Target } from './host.ts'
import { joinConnections } from './join.ts'
import { secureOuter, terminate } from './secrets/terminate.ts'
import { joinNamed } from './tls/named-tunnel.ts'

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
  const onRefused = (error: unknown) => calls.refuse(protocol, { target, error })
  if (!secrets?.terminates(target)) {
    begin()
    if (target.isAddress) joinConnections(inner, raw)
    else joinNamed({ target, inner, outer: raw, onRefused })
    return
  }
  const outer = await secureOuter(raw, target, secrets).catch((error) => {
    onRefused(error)
    throw error
  })
  begin()
  await terminate({ target, inner, outer, secrets, onRefused, used })
}
