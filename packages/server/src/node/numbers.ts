import type { ErrorCode, SandboxEnding } from '@sandlot/protocol'

/** What a node counts, for whoever watches it. */
export interface NodeNumbers {
  created(origin: 'pool' | 'cold', elapsedMs: number): void
  failed(code: ErrorCode): void
  ended(kind: SandboxEnding): void
}

export const uncounted: NodeNumbers = { created() {}, failed() {}, ended() {} }
