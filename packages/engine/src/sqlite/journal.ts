import { SHARE_ENV, Worker } from 'node:worker_threads'
import { EngineError } from '../error.ts'
import {
  BACKLOG_BYTES_MAX,
  BACKLOG_OPERATIONS_MAX,
  TRANSACTION_BYTES_MAX,
  TRANSACTION_OPERATIONS_MAX,
} from '../limits.ts'
import { onAbort } from '../on-abort.ts'
import type { OperationKind, Request, Result } from './operation.ts'
import { packBytes, unpackBytes } from './packed-bytes.ts'
import { type Pending, settlePending } from './pending.ts'
import { openError } from './sqlite-error.ts'
import {
  type FromStorage,
  fromPlainError,
  type Outcome,
  type StorageOptions,
  type ToStorage,
} from './thread-message.ts'

/**
 * Batches that the storage thread may have at once: one that runs, one that is ready when it ends. All that comes meanwhile
 * waits here and goes together, so that a busy disk makes larger commits and not a longer queue.
 */
const BATCHES_IN_FLIGHT_MAX = 2

export interface SubmitOptions<K extends OperationKind> {
  /** Payloads that travel beside the request. They must not change until the call has settled. */
  readonly bytes?: readonly Uint8Array[]
  readonly signal?: AbortSignal | undefined
  /**
   * Called when the operation has been committed, also where the caller has given up. Those of all operations run in the
   * order of the commits and before any caller goes on: the place to wake those who wait.
   */
  readonly committed?: (result: Result<K>) => void
}

export interface Reply<K extends OperationKind> {
  readonly result: Result<K>
  /** Payloads that travel beside the result. */
  readonly bytes: readonly Uint8Array[]
}

/**
 * The storage thread as seen from the main thread: operations in, replies out, grouped into transactions.
 *
 * opening ─▶ open ─▶ closing ─▶ closed. A thread that dies by itself takes an open journal to closed with `storage_failed`.
 */
export class Journal {
  readonly #worker: Worker
  /** Not yet with the storage thread. */
  readonly #waiting = new Set<Pending>()
  /** With the storage thread, batch by batch. */
  readonly #inFlight: Pending[][] = []
  #backlogBytes = 0
  #backlogOperations = 0
  #flushScheduled = false
  /** Why no more operations are taken. */
  #ended: EngineError | undefined
  #idle: (() => void) | undefined
  #backingUp: PromiseWithResolvers<readonly string[]> | undefined
  readonly #exited: Promise<void>

  private constructor(worker: Worker) {
    this.#worker = worker
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#exited = promise
    worker.on('message', (message: FromStorage) => this.#receive(message))
    worker.on('error', (error) => this.#fail(`the storage thread failed: ${error.message}`))
    worker.on('exit', () => {
      this.#fail('the storage thread ended')
      resolve()
    })
  }

  /** Starts the thread. Rejects with what it refused for; nothing is left then. */
  static async open(options: StorageOptions): Promise<Journal> {
    const worker = new Worker(new URL('./storage-thread.ts', import.meta.url), {
      workerData: options,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      // For the cache of compiled modules: without it the thread takes the types out of its sources itself, in 20 MB.
      env: SHARE_ENV,
    })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    worker.once('error', reject)
    worker.once('message', (message: FromStorage) => {
      if (message.type === 'opened') resolve()
      else if (message.type === 'refused') reject(fromPlainError(message.error))
    })
    try {
      await promise
    } catch (error) {
      await worker.terminate()
      throw openError(error, options.directory)
    }
    worker.off('error', reject)
    return new Journal(worker)
  }

  async submit<K extends OperationKind>(
    kind: K,
    request: Request<K>,
    options: SubmitOptions<K> = {},
  ): Promise<Reply<K>> {
    const { bytes = [], signal, committed } = options
    signal?.throwIfAborted()
    if (this.#ended) throw this.#ended
    const sizeBytes = bytes.reduce((sum, array) => sum + array.byteLength, 0)
    this.#checkBacklog(sizeBytes)
    const { promise, resolve, reject } = Promise.withResolvers<Reply<K>>()
    const pending: Pending = {
      operation: { kind, request },
      bytes,
      sizeBytes,
      signal,
      // Result and kind were paired by the handler's type.
      resolve: resolve as Pending['resolve'],
      reject,
      committed: committed as Pending['committed'],
      forgetSignal: () => {},
    }
    pending.forgetSignal = onAbort(signal, () => this.#abort(pending))
    this.#backlogOperations += 1
    this.#backlogBytes += sizeBytes
    this.#waiting.add(pending)
    this.#scheduleFlush()
    return promise
  }

  /**
   * Copies the database to this path, while others go on; gives what the copy pins. Called for one at a time.
   */
  async backUp(path: string): Promise<readonly string[]> {
    if (this.#ended) throw this.#ended
    this.#backingUp = Promise.withResolvers()
    try {
      this.#post({ type: 'backup', path })
      return await this.#backingUp.promise
    } finally {
      this.#backingUp = undefined
    }
  }

  /** Takes no more, waits for what was taken, and closes the database. Idempotent. */
  async close(): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = new EngineError('closed', 'the engine is closed')
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#idle = resolve
      this.#signalIdle()
      await promise
      this.#post({ type: 'close' })
    }
    await this.#exited
  }

  /** Ends the thread at once, as the death of the process would. Calls under way are rejected, their outcome unknown. */
  async crash(): Promise<void> {
    this.#ended ??= new EngineError('closed', 'the engine was ended')
    await this.#worker.terminate()
    await this.#exited
  }

  #checkBacklog(sizeBytes: number): void {
    if (
      this.#backlogOperations < BACKLOG_OPERATIONS_MAX &&
      this.#backlogBytes + sizeBytes <= BACKLOG_BYTES_MAX
    ) {
      return
    }
    throw new EngineError(
      'backlog_full',
      `${this.#backlogOperations} operations with ${this.#backlogBytes} bytes wait for the disk`,
    )
  }

  /** Once a turn of the event loop, so that all callers of the turn share a transaction. */
  #scheduleFlush(): void {
    if (this.#flushScheduled || this.#inFlight.length >= BATCHES_IN_FLIGHT_MAX) return
    this.#flushScheduled = true
    setImmediate(() => {
      this.#flushScheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    while (this.#waiting.size > 0 && this.#inFlight.length < BATCHES_IN_FLIGHT_MAX) {
      const batch = this.#takeBatch()
      this.#inFlight.push(batch)
      const bytes = packBytes(batch.map((pending) => pending.bytes))
      const operations = batch.map((pending) => pending.operation)
      this.#post({ type: 'batch', operations, bytes }, [bytes.data.buffer])
    }
  }

  #takeBatch(): Pending[] {
    const batch: Pending[] = []
    let sizeBytes = 0
    for (const pending of this.#waiting) {
      sizeBytes += pending.sizeBytes
      if (batch.length > 0 && sizeBytes > TRANSACTION_BYTES_MAX) break
      batch.push(pending)
      this.#waiting.delete(pending)
      if (batch.length === TRANSACTION_OPERATIONS_MAX) break
    }
    return batch
  }

  #post(message: ToStorage, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer)
  }

  #receive(message: FromStorage): void {
    if (message.type === 'backedUp') {
      const { outcome } = message
      if ('error' in outcome) this.#backingUp?.reject(fromPlainError(outcome.error))
      else this.#backingUp?.resolve(outcome.digests)
    }
    if (message.type !== 'done') return
    const batch = this.#inFlight.shift() ?? []
    for (const [index, outcome] of message.outcomes.entries()) {
      const pending = batch[index]
      if (pending) this.#finish(pending, outcome)
    }
    this.#flush()
    this.#signalIdle()
  }

  #finish(pending: Pending, outcome: Outcome): void {
    this.#release(pending)
    if (!outcome.ok) {
      settlePending(pending, () => pending.reject(fromPlainError(outcome.error)))
      return
    }
    pending.committed?.(outcome.result)
    const bytes = outcome.bytes ? (unpackBytes(outcome.bytes)[0] ?? []) : []
    settlePending(pending, () => pending.resolve({ result: outcome.result, bytes }))
  }

  /** What has not gone to the thread yet is withdrawn; what has goes on without its caller. */
  #abort(pending: Pending): void {
    if (this.#waiting.delete(pending)) {
      this.#release(pending)
      this.#signalIdle()
    }
    settlePending(pending, () => pending.reject(pending.signal?.reason))
  }

  #release(pending: Pending): void {
    this.#backlogOperations -= 1
    this.#backlogBytes -= pending.sizeBytes
  }

  #signalIdle(): void {
    if (this.#waiting.size === 0 && this.#inFlight.length === 0) this.#idle?.()
  }

  #fail(message: string): void {
    this.#ended ??= new EngineError('storage_failed', message)
    const lost = [...this.#inFlight.splice(0).flat(), ...this.#waiting]
    this.#waiting.clear()
    this.#backingUp?.reject(this.#ended)
    for (const pending of lost) {
      this.#release(pending)
      settlePending(pending, () => pending.reject(this.#ended))
    }
    this.#signalIdle()
  }
}
