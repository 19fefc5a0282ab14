import { EngineError, type EngineErrorCode, type EngineErrorDetails } from '../error.ts'
import type { OperationKind } from './operation.ts'
import type { PackedBytes } from './packed-bytes.ts'

/** What the storage thread is started with. */
export interface StorageOptions {
  readonly directory: string
  readonly durability: 'process' | 'power'
  /** Bound of the database file, so that a test can fill it. */
  readonly databaseBytesMax?: number
}

/** One message is one transaction. */
export type ToStorage =
  | {
      readonly type: 'batch'
      readonly operations: readonly Operation[]
      readonly bytes: PackedBytes
    }
  /** The database as of one instant, as a file of its own at this path. The thread goes on with its batches meanwhile. */
  | { readonly type: 'backup'; readonly path: string }
  | { readonly type: 'close' }

export interface Operation {
  readonly kind: OperationKind
  readonly request: object
}

/** Outcomes stand in the order of the operations. */
export type FromStorage =
  | { readonly type: 'opened' }
  | { readonly type: 'refused'; readonly error: PlainError }
  | { readonly type: 'done'; readonly outcomes: readonly Outcome[] }
  /** `digests`: what is pinned in the copy. */
  | {
      readonly type: 'backedUp'
      readonly outcome: { readonly digests: readonly string[] } | { readonly error: PlainError }
    }

export type Outcome =
  | { readonly ok: true; readonly result: unknown; readonly bytes: PackedBytes | undefined }
  | { readonly ok: false; readonly error: PlainError }

/** An `EngineError` as it crosses the thread boundary. */
export interface PlainError {
  readonly code: EngineErrorCode
  readonly message: string
  readonly hint: string
  readonly details: EngineErrorDetails
}

export function toPlainError({ code, message, hint, details }: EngineError): PlainError {
  return { code, message, hint, details }
}

export function fromPlainError({ code, message, hint, details }: PlainError): EngineError {
  return new EngineError(code, message, { hint, details })
}
