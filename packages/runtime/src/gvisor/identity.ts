import { createHash, randomBytes } from 'node:crypto'
import type { SandboxSpec } from '../driver.ts'
import type { GuestConfiguration, GuestIdentity } from '../guest/guest.ts'
import { RUNTIME_LIMITS } from '../limits.ts'

const SEED_BYTES = 32

export function configurationOf(spec: SandboxSpec): GuestConfiguration {
  const { id, detachedMs, lifetimeMs } = spec
  return { sandbox: id, detachedMs, ...(lifetimeMs === undefined ? {} : { lifetimeMs }) }
}

/** What the worlds of a sandbox that may be copied are shown: the id is the sandbox's own, the seed this start's. */
export function markOf(spec: Pick<SandboxSpec, 'id'>): {
  readonly machineId: string
  readonly seed: string
} {
  const machineId = createHash('sha256').update(spec.id).digest('hex').slice(0, 32)
  return { machineId: `${machineId}\n`, seed: `${randomBytes(SEED_BYTES).toString('hex')}\n` }
}

export function identityOf(spec: SandboxSpec): GuestIdentity {
  const { hostname, relayPort } = spec
  const relay = relayPort === undefined ? {} : { relayPort }
  return { ...configurationOf(spec), ...markOf(spec), hostname, ...relay }
}

/** For one that is told later who it is. */
export function nobody(hostId: string): GuestIdentity {
  const detachedMs = RUNTIME_LIMITS.blankDetachedMs
  return { sandbox: '', detachedMs, hostname: 'blank', ...markOf({ id: hostId }) }
}
