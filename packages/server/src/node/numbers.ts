import type { ErrorCode, SandboxEnding, SandboxOrigin } from '@sandlot/protocol'
import type { Reconciled, RelayNews } from '@sandlot/runtime'

/** What a node counts, for whoever watches it. */
export interface NodeNumbers {
  created(origin: SandboxOrigin, elapsedMs: number): void
  failed(code: ErrorCode): void
  ended(kind: SandboxEnding): void
  /** A process inside asked for a connection. */
  connected(outcome: RelayNews['outcome']): void
  /** The node and its machine did not agree, and were brought in line: so many things of this sort. */
  reconciled(what: keyof Reconciled, count: number): void
}

export const uncounted: NodeNumbers = {
  created() {},
  failed() {},
  ended() {},
  connected() {},
  reconciled() {},
}
