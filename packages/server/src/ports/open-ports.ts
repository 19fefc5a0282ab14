import type { DaemonOptions } from '../config.ts'
import type { Handlers } from '../http/call.ts'
import type { KeyRing } from '../http/keys.ts'
import type { Signer } from '../http/signed.ts'
import { portHandlers } from './handlers.ts'
import { PortGate, type PortGateParts } from './port-gate.ts'
import { portPlaces } from './port-places.ts'
import { PortTokens } from './port-token.ts'
import { Ports } from './ports.ts'

export interface OpenPortsParts
  extends Pick<PortGateParts, 'node' | 'rights' | 'rates' | 'serving' | 'log' | 'onAnswered'> {
  readonly options: DaemonOptions
  readonly keys: KeyRing
  readonly signer: Signer
  readonly daemonUrl: () => string
  readonly now: () => number
}

export interface OpenedPorts {
  readonly ports: Ports
  readonly gate: PortGate
  readonly handlers: Pick<Handlers, 'listPorts' | 'signPortUrl'>
}

/** All that leads to servers in sandboxes. */
export function openPorts(parts: OpenPortsParts): OpenedPorts {
  const { node, options, now } = parts
  const tokens = new PortTokens(parts)
  const places = portPlaces({ ...options, daemonUrl: parts.daemonUrl })
  const ports = new Ports()
  return {
    ports,
    gate: new PortGate({ ...parts, ports, places, tokens, access: options }),
    handlers: portHandlers({ node, tokens, places, now }),
  }
}
