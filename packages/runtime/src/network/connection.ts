import type { Duplex } from 'node:stream'
import type { Target } from './host.ts'
import type { ModelEndpoint } from './model-relay.ts'

/** What a connection from inside asks its relay. */
export interface RelayCalls {
  /**
   * A connection to the target for what came on `inner`, if the policy of this moment allows it. Both are closed when a later policy
   * refuses the target, or when nothing moves. Rejects with a `Refusal`.
   */
  open(target: Target, inner: Duplex, protocol: RelayProtocol): Promise<Duplex>
  /** What was asked for is no target. */
  refuse(protocol: RelayProtocol): void
  /**
   * A request is being answered, until the function is called; while there is none, the next one is awaited for a while only. Undefined:
   * too many are not answered yet, and the connection is closed.
   */
  occupy(inner: Duplex): (() => void) | undefined
  /** What requests that name no other host are for. */
  readonly model?: ModelEndpoint | undefined
}

export type RelayProtocol = 'http' | 'connect' | 'socks'
