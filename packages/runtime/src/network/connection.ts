import type { Duplex } from 'node:stream'
import type { Target } from './host.ts'
import type { InnerServer } from './inner-server.ts'
import type { ModelEndpoint } from './model-relay.ts'
import type { RelaySecrets } from './secrets/relay-secrets.ts'

/** What a connection from inside asks its relay. */
export interface RelayCalls {
  /**
   * A connection to the target for what came on `inner`, if the policy of this moment allows it. Both are closed when a later policy
   * refuses the target, or when nothing moves. `used`: variables whose secrets go over it, complete when it closes. Rejects with a
   * `Refusal`.
   */
  open(
    target: Target,
    inner: Duplex,
    protocol: RelayProtocol,
    used?: ReadonlySet<string>,
  ): Promise<Duplex>
  /** What was asked for is no target; or it is one, and what came of it after it was opened, or before, is a refusal. */
  refuse(protocol: RelayProtocol, of?: { readonly target: Target; readonly error: unknown }): void
  /**
   * A request is being answered, until the function is called; while there is none, the next one is awaited for a while only. Undefined:
   * too many are not answered yet, and the connection is closed.
   */
  occupy(inner: Duplex): (() => void) | undefined
  /** What is put into requests. */
  readonly secrets?: RelaySecrets | undefined
  /** What requests that name no other host are for. */
  readonly model?: ModelEndpoint | undefined
  /** The same, where there is no model. */
  readonly server?: InnerServer | undefined
}

export type RelayProtocol = 'http' | 'connect' | 'socks'
