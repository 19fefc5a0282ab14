import type { RunEvent } from '@sandlot/core'
import type { Clock, Log, Position } from '@sandlot/engine'
import { isTransient } from './engine-error.ts'
import { encodeBatch } from './event-record.ts'
import { COORDINATOR_LIMITS } from './limits.ts'

export interface Batch {
  readonly events: readonly RunEvent[]
  /** The run's state after these events, to be stored as a checkpoint. */
  readonly state?: Uint8Array
  /** In the order of the batches. Must not throw. */
  durable(): void
  /** The journal was closed before the batch was known to be durable: it may be in the log or not. Must not throw. */
  forgotten(): void
}

export interface JournalOptions {
  readonly log: Log
  readonly clock: Clock
  readonly stream: string
  /** Position of the last record, or `'start'`. */
  readonly head: Position | 'start'
  /** What was read since the last checkpoint. */
  readonly sinceCheckpointBytes: number
  /** Nothing more can be written: the run in memory is ahead of its log for good. */
  failed(error: unknown): void
}

/** One record, or none; and the batch that is durable with it, where it is the batch's last. */
interface Item {
  readonly record?: Uint8Array
  readonly ends?: Batch
}

/**
 * Writes a run's events, batch after batch. While one append is under way further batches are decided and gather here; the next
 * append takes all that have gathered and fit. So the disk and the decisions overlap, and yet each append names the position that
 * it expects: a second coordinator of the same run is refused.
 */
export class EventJournal {
  readonly #options: JournalOptions
  #head: Position | 'start'
  #sinceCheckpointBytes: number
  #waiting: Item[] = []
  #waitingBytes = 0
  #waitingBatches = 0
  #closed = false
  #running = false
  #writing = Promise.resolve()
  #checkpointing: Promise<void> | undefined
  #cancelRetry = () => {}

  constructor(options: JournalOptions) {
    this.#options = options
    this.#head = options.head
    this.#sinceCheckpointBytes = options.sinceCheckpointBytes
  }

  /** Events that were taken and are not durable yet. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  get waitingBatches(): number {
    return this.#waitingBatches
  }

  /**
   * Whether the next batch should bring the run's state, which would take about `stateBytes`. So much has to have been written
   * before that checkpoints cost a fixed share of it, however large the state is.
   */
  isCheckpointDue(stateBytes: number): boolean {
    const { checkpointBytes, checkpointRatio } = COORDINATOR_LIMITS
    const wantedBytes = Math.max(checkpointBytes, stateBytes * checkpointRatio)
    return this.#checkpointing === undefined && this.#sinceCheckpointBytes >= wantedBytes
  }

  write(batch: Batch): void {
    if (this.#closed) {
      batch.forgotten()
      return
    }
    // From here on, so that the batches behind this one don't bring a state as well.
    if (batch.state !== undefined) this.#sinceCheckpointBytes = 0
    const records = encodeBatch(batch.events)
    for (const record of records) {
      this.#waitingBytes += record.length
      this.#sinceCheckpointBytes += record.length
    }
    if (records.length === 0) this.#waiting.push({ ends: batch })
    for (const [index, record] of records.entries()) {
      this.#waiting.push(index === records.length - 1 ? { record, ends: batch } : { record })
    }
    this.#waitingBatches += 1
    if (!this.#running) this.#writing = this.#writeAll()
  }

  /** Resolves once nothing is being written; what still waits is forgotten. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    this.#settle(this.#waiting.splice(0))
    this.#cancelRetry()
    await this.#writing
    await this.#checkpointing
  }

  async #writeAll(): Promise<void> {
    this.#running = true
    let taken: Item[] = []
    try {
      while (this.#waiting.length > 0 && !this.#closed) {
        taken = takeWhatFits(this.#waiting)
        this.#waiting = this.#waiting.slice(taken.length)
        const records = taken.flatMap(({ record }) => record ?? [])
        if (records.length > 0) await this.#append(records)
        this.#settle(taken)
      }
    } catch (error) {
      this.#closed = true
      this.#settle([...taken, ...this.#waiting.splice(0)])
      this.#options.failed(error)
    } finally {
      this.#running = false
    }
  }

  async #append(records: readonly Uint8Array[]): Promise<void> {
    const { log, clock, stream } = this.#options
    while (!this.#closed) {
      try {
        this.#head = (await log.append(stream, records, { expect: this.#head })).position
        return
      } catch (error) {
        if (!isTransient(error)) throw error
        await new Promise<void>((resolve) => {
          const cancel = clock.after(COORDINATOR_LIMITS.appendRetryMs, resolve)
          this.#cancelRetry = () => {
            cancel()
            resolve()
          }
        })
      }
    }
  }

  #settle(taken: readonly Item[]): void {
    for (const { record, ends } of taken) {
      this.#waitingBytes -= record?.length ?? 0
      if (ends === undefined) continue
      this.#waitingBatches -= 1
      if (this.#closed) ends.forgotten()
      else ends.durable()
      if (ends.state !== undefined) this.#saveCheckpoint(ends.state)
    }
  }

  /** One at a time, beside the appends. One that fails is made again later: it only saves time. */
  #saveCheckpoint(state: Uint8Array): void {
    const { log, stream } = this.#options
    const position = this.#head
    if (this.#closed || this.#checkpointing !== undefined || position === 'start') return
    this.#checkpointing = log
      .checkpoint(stream, position, state)
      .then(() => log.trim(stream, position))
      .catch(() => {})
      .finally(() => {
        this.#checkpointing = undefined
      })
  }
}

/** A batch that brings a state is the last one of its append: the checkpoint stands at its end. */
function takeWhatFits(waiting: readonly Item[]): Item[] {
  const taken: Item[] = []
  let sizeBytes = 0
  for (const item of waiting) {
    sizeBytes += item.record?.length ?? 0
    if (taken.length > 0 && sizeBytes > COORDINATOR_LIMITS.eventAppendBytes) break
    taken.push(item)
    if (item.ends?.state !== undefined) break
  }
  return taken
}
