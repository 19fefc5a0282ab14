import type { DatabaseSync } from 'node:sqlite'
import { EngineError } from '../error.ts'
import type { OperationHandlers } from './operation.ts'
import { packBytes } from './packed-bytes.ts'
import { isFatal, storageError } from './sqlite-error.ts'
import { type Operation, type Outcome, toPlainError } from './thread-message.ts'

/**
 * Carries out batches of operations, each batch in one transaction.
 *
 * A refusal is the outcome of its operation alone, since handlers refuse before they write. Any other failure undoes the whole
 * batch; its operations are then carried out one by one, so that only those which fail by themselves do. After a failure that
 * leaves the disk's content unknown, everything is refused.
 */
export class Transactions {
  readonly #database: DatabaseSync
  readonly #handlers: OperationHandlers
  #broken: EngineError | undefined

  constructor(database: DatabaseSync, handlers: OperationHandlers) {
    this.#database = database
    this.#handlers = handlers
  }

  run(operations: readonly Operation[], bytes: readonly Uint8Array[][]): Outcome[] {
    const attempt = this.#attempt(operations, bytes)
    if (Array.isArray(attempt)) return attempt
    if (attempt.code === 'disk_full') this.#foldLog()
    else if (operations.length === 1) return [failed(attempt)]
    return operations.flatMap((operation, index) => {
      const alone = this.#attempt([operation], [bytes[index] ?? []])
      return Array.isArray(alone) ? alone : [failed(alone)]
    })
  }

  #attempt(
    operations: readonly Operation[],
    bytes: readonly Uint8Array[][],
  ): Outcome[] | EngineError {
    if (this.#broken) return this.#broken
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      const outcomes = operations.map((operation, index) =>
        this.#one(operation, bytes[index] ?? []),
      )
      this.#database.exec('COMMIT')
      return outcomes
    } catch (error) {
      const failure = storageError(error, 'the data could not be written')
      this.#rollBack()
      if (isFatal(error)) this.#broken = failure
      return failure
    }
  }

  #one(operation: Operation, bytesIn: readonly Uint8Array[]): Outcome {
    const bytesOut: Uint8Array[] = []
    // The kind and its request were paired by the types of the sender.
    const handler = this.#handlers[operation.kind] as (
      request: object,
      bytesIn: readonly Uint8Array[],
      bytesOut: Uint8Array[],
    ) => unknown
    try {
      const result = handler(operation.request, bytesIn, bytesOut)
      return { ok: true, result, bytes: bytesOut.length > 0 ? packBytes([bytesOut]) : undefined }
    } catch (error) {
      if (error instanceof EngineError) return failed(error)
      throw error
    }
  }

  /**
   * Folds the write-ahead log into the database, so that the space of what was overwritten since is used again. Fails where
   * the database itself cannot grow.
   */
  #foldLog(): void {
    try {
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch (error) {
      if (isFatal(error)) this.#broken = storageError(error, 'the data could not be flushed')
    }
  }

  /** SQLite has rolled back by itself after some failures. */
  #rollBack(): void {
    try {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
    } catch (error) {
      this.#broken = storageError(error, 'a failed transaction could not be undone')
    }
  }
}

function failed(error: EngineError): Outcome {
  return { ok: false, error: toPlainError(error) }
}
