import type { Operation } from './thread-message.ts'

/** An operation whose caller has no answer yet. */
export interface Pending {
  readonly operation: Operation
  readonly bytes: readonly Uint8Array[]
  readonly sizeBytes: number
  readonly signal: AbortSignal | undefined
  readonly resolve: (reply: { result: unknown; bytes: readonly Uint8Array[] }) => void
  readonly reject: (reason: unknown) => void
  readonly committed: ((result: unknown) => void) | undefined
  /** Ends the watch on `signal`. */
  forgetSignal: () => void
}

/** Answers the caller and lets go of its signal; a second answer has no effect. */
export function settlePending(pending: Pending, answer: () => void): void {
  pending.forgetSignal()
  answer()
}
