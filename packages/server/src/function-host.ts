import type { Clock } from '@sandlot/engine'
import { NETWORK_LIMITS } from '@sandlot/runtime'
import type { FunctionHost } from './coordinator/functions/function-host.ts'
import { COORDINATOR_LIMITS } from './coordinator/limits.ts'
import type { ContainerSource } from './functions/container.ts'
import { DAEMON_KEY } from './http/keys.ts'
import { sandboxToken } from './http/sandbox-token.ts'
import type { Signer } from './http/signed.ts'

/** Where this daemon's runs have functions as their workers. */
export function functionHost(source: ContainerSource, signer: Signer, clock: Clock): FunctionHost {
  return {
    source,
    url: `http://127.0.0.1:${NETWORK_LIMITS.port}`,
    token: (right) => {
      const expiresAtMs = clock.now() + COORDINATOR_LIMITS.leaseTokenMs
      return sandboxToken(signer, { ...right, key: DAEMON_KEY, expiresAtMs })
    },
  }
}
