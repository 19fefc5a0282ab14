import type { Appended, StreamInfo } from '../log.ts'
import type { QueueDepth } from '../queue.ts'

/**
 * What the storage thread can be asked, by kind. Numbers are positions and revisions as SQLite has them. Payloads travel beside
 * the request and beside the result, in the order that the comment says.
 */
export interface Operations {
  /** In: the records. */
  'log.append': {
    request: { stream: string; expect?: number; dedup?: readonly string[] }
    result: Appended
  }
  /** Out: the records. */
  'log.read': { request: { stream: string; after?: number; limit: number }; result: string[] }
  /** Out: the records of those that were found. Null where there is none. */
  'log.find': { request: { stream: string; keys: readonly string[] }; result: (string | null)[] }
  'log.head': { request: { stream: string }; result: string | undefined }
  /** In: the state. */
  'log.checkpoint': { request: { stream: string; position: number }; result: undefined }
  /** Out: the state. */
  'log.latestCheckpoint': { request: { stream: string }; result: string | undefined }
  /** One bounded step. Result: whether there is more to do. */
  'log.trim': { request: { stream: string; upTo: number }; result: boolean }
  'log.list': {
    request: { prefix: string; after?: string; limit: number }
    result: StreamInfo[]
  }
  'log.delete': { request: { stream: string }; result: boolean }
  /** One bounded step of removing what deleted streams left. Result: whether there is more to do. */
  'log.sweep': { request: Record<never, never>; result: boolean }

  /** In: the body. */
  'queue.put': {
    request: { queue: string; priority: number; delayMs: number; dedup?: string; nowMs: number }
    result: { id: string; duplicate: boolean; dueAtMs: number }
  }
  /** Serves the wants in order. Out: the bodies, those of the first want first. */
  'queue.lease': {
    request: { queue: string; wants: readonly LeaseWant[]; nowMs: number }
    result: { leases: LeasedRow[][]; nextDueAtMs: number | null }
  }
  'queue.extend': {
    request: { queue: string; id: string; token: number; leaseMs: number; nowMs: number }
    result: number
  }
  'queue.ack': { request: { queue: string; id: string; token: number }; result: undefined }
  /** Result: when it is ready again. */
  'queue.nack': {
    request: {
      queue: string
      id: string
      token: number
      delayMs: number
      nowMs: number
      /** Nobody got it: it was never delivered. */
      untaken?: boolean
    }
    result: number
  }
  /** Result: whether there may be more. */
  'queue.delete': { request: { queue: string }; result: boolean }
  'queue.depth': { request: { queue: string; nowMs: number }; result: QueueDepth }
  /** Out: the bodies. */
  'queue.list': {
    request: { prefix: string; after?: string; limit: number }
    result: { messages: { queue: string; id: string }[]; more: boolean }
  }

  /** Out: the value. */
  'kv.get': { request: { key: string; nowMs: number }; result: KvRow | undefined }
  /** In: the value. `expect` null: only if absent. */
  'kv.put': {
    request: { key: string; expect?: number | null; expiresAtMs: number | null; nowMs: number }
    result: string
  }
  /** Result: the delete's own revision, undefined where there was nothing to delete. */
  'kv.delete': {
    request: { key: string; expect?: number; nowMs: number }
    result: string | undefined
  }
  /** Out: the values. */
  'kv.list': {
    request: { prefix: string; after?: string; limit: number; nowMs: number }
    result: { rows: KvRow[]; more: boolean }
  }
  /** One bounded step. */
  'kv.expire': {
    request: { nowMs: number }
    result: { expired: { key: string; revision: string }[]; nextAtMs: number | null }
  }

  /** One bounded step of giving freed pages back to the disk. Result: whether there is more to do. */
  'storage.reclaim': { request: Record<never, never>; result: boolean }

  'pin.set': { request: { name: string; digest: string }; result: undefined }
  'pin.remove': { request: { name: string }; result: boolean }
  'pin.list': {
    request: { prefix: string; after?: string; limit: number }
    result: { name: string; digest: string }[]
  }
  /** Those of the digests that no pin keeps. */
  'pin.unpinned': { request: { digests: readonly string[] }; result: string[] }
}

export type OperationKind = keyof Operations

export type Request<K extends OperationKind> = Operations[K]['request']
export type Result<K extends OperationKind> = Operations[K]['result']

export interface LeaseWant {
  readonly max: number
  readonly leaseMs: number
}

export interface LeasedRow {
  readonly id: string
  readonly token: number
  readonly priority: number
  readonly deliveries: number
  readonly expiresAtMs: number
}

export interface KvRow {
  readonly key: string
  readonly revision: string
  readonly expiresAtMs: number | null
}

/** Carries one kind out inside the transaction. A refusal (`EngineError`) comes before the first write. */
export type OperationHandler<K extends OperationKind> = (
  request: Request<K>,
  bytesIn: readonly Uint8Array[],
  bytesOut: Uint8Array[],
) => Result<K>

export type OperationHandlers<K extends OperationKind = OperationKind> = {
  [Kind in K]: OperationHandler<Kind>
}
