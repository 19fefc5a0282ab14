import type { SandboxSpec } from '../driver.ts'
import type { GuestConfiguration, GuestIdentity } from '../guest/guest.ts'
import { RUNTIME_LIMITS } from '../limits.ts'

export function configurationOf(spec: SandboxSpec): GuestConfiguration {
  const { id, detachedMs, lifetimeMs } = spec
  return { sandbox: id, detachedMs, ...(lifetimeMs === undefined ? {} : { lifetimeMs }) }
}

export function identityOf(spec: SandboxSpec): GuestIdentity {
  const { hostname, relayPort } = spec
  const relay = relayPort === undefined ? {} : { relayPort }
  return { ...configurationOf(spec), hostname, ...relay }
}

/** For one that is told later who it is. */
export function nobody(): GuestIdentity {
  const detachedMs = RUNTIME_LIMITS.blankDetachedMs
  return { sandbox: '', detachedMs, hostname: 'blank' }
}
