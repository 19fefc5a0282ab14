import type { IncomingMessage } from 'node:http'
import { SandlotError } from '@sandlot/protocol'
import type { Caller, KeyRing } from './keys.ts'
import type { RateLimits } from './rate-limits.ts'
import { callerOfToken, isSandboxToken } from './sandbox-token.ts'
import type { Signer } from './signed.ts'

export interface RightsOptions {
  readonly keys: KeyRing
  readonly signer: Signer
  readonly now: () => number
  /** Whether the lease that a sandbox token names still lives; answered from memory. Default: it isn't asked. */
  readonly isLeaseAlive?: (lease: string, sandbox: string) => boolean
}

interface Held {
  readonly caller: Caller
  readonly onLost: (why: SandlotError) => void
}

/** Who a request comes from, and whether that still holds. Nothing here does I/O. */
export class Rights {
  readonly #options: RightsOptions
  readonly #held = new Set<Held>()

  constructor(options: RightsOptions) {
    this.#options = options
  }

  /**
   * Who presents this `authorization` header: `Bearer` and a key (`sk_…`) or a sandbox token (`st_…`).
   * @throws SandlotError `unauthorized`, `token_invalid`, `token_expired`, `lease_lost`
   */
  authenticate(authorization: string | undefined): Caller {
    if (authorization === undefined) throw new SandlotError('unauthorized', 'no key was sent')
    const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
    if (token === undefined) {
      throw new SandlotError('unauthorized', 'the authorization header is not “Bearer KEY”')
    }
    const { keys, signer } = this.#options
    if (!isSandboxToken(token)) return keys.callerOf(token)
    const caller = callerOfToken(signer, token)
    this.check(caller)
    return caller
  }

  /**
   * Whether a caller that was let in before may go on.
   * @throws SandlotError `unauthorized` when its key was revoked or expired, `token_expired`, `lease_lost`
   */
  check({ key, sandbox }: Caller): void {
    const { keys, now, isLeaseAlive } = this.#options
    keys.check(key)
    if (sandbox === undefined) return
    const { id, lease, expiresAtMs } = sandbox
    if (expiresAtMs <= now()) throw new SandlotError('token_expired', 'this sandbox token expired')
    if (lease !== undefined && isLeaseAlive && !isLeaseAlive(lease, id)) {
      throw new SandlotError('lease_lost', 'the lease of this sandbox token is over')
    }
  }

  /** For what stays open: told once when the right of its caller is lost, unless disposed of before. */
  hold(caller: Caller, onLost: (why: SandlotError) => void): Disposable {
    const held = { caller, onLost }
    this.#held.add(held)
    return { [Symbol.dispose]: () => void this.#held.delete(held) }
  }

  /** Looks who of those that stay open has lost the right to. The daemon does so each `rightsEveryMs`. */
  endLost(): void {
    for (const held of this.#held) {
      try {
        this.check(held.caller)
      } catch (error) {
        this.#held.delete(held)
        held.onLost(error as SandlotError)
      }
    }
  }
}

/**
 * Who a request comes from. Refusals are counted by address.
 * @throws SandlotError as `authenticate`, and `rate_limited` in place of it for who is refused too often
 */
export function letIn(
  { headers, socket }: IncomingMessage,
  { rights, rates }: { readonly rights: Rights; readonly rates: RateLimits },
): Caller {
  try {
    return rights.authenticate(headers.authorization)
  } catch (error) {
    rates.refused(socket.remoteAddress ?? '')
    throw error
  }
}
