/**
 * Calls of one function by one process: inputs are sent in batches, and one reader takes what comes back for all who wait. It reads as long
 * as somebody waits.
 */
import {
  LIMITS,
  type QueueResult,
  type QueueResultsPage,
  type QueueTasksPut,
  SandlotError,
  type TaskLog,
} from '@sandlot/protocol'
import type { ClientContext } from '../connection/context.ts'
import { type Deferred, deferred } from '../connection/deferred.ts'
import { isCode, toError } from '../connection/failure.ts'
import { unlessAborted } from '../connection/signals.ts'
import { withGaps } from './log-gaps.ts'

export type EncodedInput =
  | { readonly json: string }
  | { readonly blob: string }
  | Record<never, never>
type TaskPut = QueueTasksPut['tasks'][number]

export interface CallsOptions {
  /** Name of the function's queue, once it is there. `again`: it was there, and is not any more. */
  readonly queue: (again: boolean) => Promise<string>
  readonly onLog: (line: TaskLog) => void
  /** Aborted when the client is closed. */
  readonly closing: AbortSignal
}

interface Outgoing {
  readonly task: TaskPut
  readonly sizeBytes: number
  readonly accepted: Deferred<string>
}

/** A request is sent before it reaches the limit of a body. */
const REQUEST_BYTES = LIMITS.bodyBytes / 2

export class Calls {
  /** Keeps this process's results apart from those of others. */
  readonly group = crypto.randomUUID().replaceAll('-', '')
  readonly #context: ClientContext
  readonly #options: CallsOptions
  #outgoing: Outgoing[] = []
  #sending = false
  /** By the task's id. */
  readonly #waiting = new Map<string, Deferred<QueueResult>>()
  /** Calls whose ids are not known yet, while their results may be there. */
  #unnamed = 0
  readonly #early = new Map<string, QueueResult>()
  #reading = false
  #cursor: string | undefined
  #nextLog = 0

  constructor(context: ClientContext, options: CallsOptions) {
    this.#context = context
    this.#options = options
  }

  /** Resolves with how it ended. Aborting ends the wait alone. */
  async call(input: EncodedInput, signal?: AbortSignal): Promise<QueueResult> {
    this.#unnamed += 1
    const accepted = this.#send(input)
    this.#read()
    let task: string
    try {
      task = await accepted
    } finally {
      this.#unnamed -= 1
    }
    const early = this.#early.get(task)
    this.#early.delete(task)
    if (this.#unnamed === 0) this.#early.clear()
    if (early) return early
    const waiting = deferred<QueueResult>()
    this.#waiting.set(task, waiting)
    this.#read()
    try {
      return await unlessAborted(waiting.promise, signal)
    } finally {
      this.#waiting.delete(task)
    }
  }

  /** Resolves with the task's id once it is durable. */
  async put(input: EncodedInput): Promise<string> {
    return await this.#send(input)
  }

  #send(input: EncodedInput): Promise<string> {
    const accepted = deferred<string>()
    const task: TaskPut = { id: crypto.randomUUID(), ...input }
    const sizeBytes = 'json' in input ? 2 * input.json.length : 200
    this.#outgoing.push({ task, sizeBytes, accepted })
    if (!this.#sending) void this.#sendAll()
    return accepted.promise
  }

  async #sendAll(): Promise<void> {
    this.#sending = true
    // What is called in the same turn goes along.
    await Promise.resolve()
    while (this.#outgoing.length > 0) {
      const batch = this.#nextBatch()
      try {
        const ids = await this.#post(batch.map(({ task }) => task))
        for (const [index, { accepted }] of batch.entries()) accepted.resolve(ids[index] as string)
      } catch (error) {
        for (const { accepted } of batch) accepted.reject(error)
      }
    }
    this.#sending = false
  }

  #nextBatch(): Outgoing[] {
    let sizeBytes = 0
    let count = 0
    for (const each of this.#outgoing) {
      sizeBytes += each.sizeBytes
      if (count > 0 && (sizeBytes > REQUEST_BYTES || count >= LIMITS.tasksPerRequest)) break
      count += 1
    }
    const batch = this.#outgoing.slice(0, count)
    this.#outgoing = this.#outgoing.slice(count)
    return batch
  }

  async #post(tasks: readonly TaskPut[]): Promise<string[]> {
    const json = { call: this.group, tasks }
    for (let again = false; ; again = true) {
      const name = await this.#options.queue(again)
      if (again) this.#begin()
      try {
        const { closing: signal } = this.#options
        const added = await this.#context.http.json<{ tasks: { task: string }[] }>(
          'putQueueTasks',
          {
            ...{ parameters: { name }, json, signal },
          },
        )
        return added.tasks.map(({ task }) => task)
      } catch (error) {
        // One that nobody used for long was removed.
        if (again || !isCode(error, 'queue_unknown')) throw error
      }
    }
  }

  /** Its results begin anew. */
  #begin(): void {
    this.#cursor = undefined
    this.#nextLog = 0
  }

  #read(): void {
    if (this.#reading) return
    this.#reading = true
    this.#readAll().catch((error) => {
      this.#reading = false
      for (const { reject } of this.#waiting.values()) reject(toError(error))
      this.#waiting.clear()
    })
  }

  async #readAll(): Promise<void> {
    const name = await this.#options.queue(false)
    while (this.#waiting.size + this.#unnamed > 0) {
      const page = await this.#page(name)
      for (const line of withGaps(page.logs, this.#nextLog)) this.#options.onLog(line)
      this.#nextLog = page.logsNext
      this.#cursor = page.cursor === '' ? undefined : page.cursor
      for (const result of page.results) this.#take(result)
      // Whoever was told may ask for the next at once.
      await Promise.resolve()
    }
    this.#reading = false
  }

  #take(result: QueueResult): void {
    const waiting = this.#waiting.get(result.task)
    if (waiting) waiting.resolve(result)
    else if (this.#unnamed > 0) this.#early.set(result.task, result)
    this.#waiting.delete(result.task)
  }

  async #page(name: string): Promise<QueueResultsPage> {
    try {
      return await this.#context.http.json<QueueResultsPage>('getQueueResults', {
        parameters: { name },
        query: {
          call: this.group,
          after: this.#cursor,
          limit: LIMITS.rowsPerPage,
          logs: this.#nextLog,
          wait: LIMITS.waitMs,
        },
        signal: this.#options.closing,
      })
    } catch (error) {
      if (this.#cursor !== undefined && isCode(error, 'invalid_request')) {
        // What comes after the last that it read was removed by its age: nobody waits for that any more.
        this.#begin()
        return await this.#page(name)
      }
      if (!isCode(error, 'queue_unknown')) throw error
      const message = 'the queue of the function was deleted while its calls were under way'
      throw new SandlotError('function_lost', message, { cause: error })
    }
  }
}
