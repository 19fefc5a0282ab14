/**
 * Task queues, and the functions that work on them.
 *
 * ```
 * put (durable) ─▶ waits ─▶ leased for a free slot of a container ─▶ result (durable, once) ─▶ gone
 *                    ▲                                        └─▶ dead letter, after its retries
 *                    └── tried again, after a while ── failed, or lost with its container
 * ```
 * Calls of a function are tasks of a queue of its own, with results apart for each caller.
 */
import type { Clock, Engine } from '@sandlot/engine'
import {
  type DeadLetter,
  newId,
  type QueuePut,
  type QueueResult,
  type QueueResultsPage,
  type QueueTasksPut,
  type QueueView,
  SandlotError,
} from '@sandlot/protocol'
import type { Logger } from 'pino'
import { encodeJson } from '../json.ts'
import { kvRecords } from '../kv-records.ts'
import { createNameLock } from '../name-lock.ts'
import { CallLogs } from './call-logs.ts'
import type { ContainerSource } from './container.ts'
import { listDead, replayDead } from './dead-letters.ts'
import { changed, functionOf } from './definition.ts'
import { keepBundle } from './keep-blob.ts'
import { keptMs } from './kept.ts'
import { FUNCTION_LIMITS } from './limits.ts'
import { QUEUE_PREFIX, recordKey } from './names.ts'
import { News } from './news.ts'
import { putTasks } from './put-tasks.ts'
import type { QueueWork } from './queue-work.ts'
import { pageOfResults, type Reading, type ReadQuery, resultOfTask } from './read-results.ts'
import { type QueueRecord, queueRecord } from './records.ts'
import { ResultWriter } from './result-writer.ts'
import { removeAll, sweepResults } from './retention.ts'
import { viewOf } from './view.ts'
import { type WorkNumbers, Works } from './works.ts'

export interface QueuesOptions {
  readonly engine: Engine
  readonly clock: Clock
  readonly source: ContainerSource
  readonly log: Logger
  /** How long results stay where a queue says nothing itself. Default: a week, those of calls a day. */
  readonly retainMs?: number | undefined
}

export interface QueueNumbers extends WorkNumbers {
  readonly queues: number
}

interface Known {
  record: QueueRecord
  work: QueueWork | undefined
}

export class Queues implements AsyncDisposable {
  readonly #options: QueuesOptions
  readonly #known = new Map<string, Known>()
  readonly #works: Works
  readonly #locks = createNameLock()
  readonly #closing = new AbortController()
  readonly #logs = new CallLogs()
  readonly #news: News
  #sweeping: Disposable | undefined

  constructor(options: QueuesOptions) {
    const { engine, clock, source, log } = options
    this.#options = options
    this.#news = new News(clock, FUNCTION_LIMITS.readers)
    const common = {
      ...{ engine, clock, source, news: this.#news, logs: this.#logs },
      results: new ResultWriter(engine.log),
      signal: this.#closing.signal,
    }
    this.#works = new Works(common, (queue, message, err) => log.warn({ err, queue }, message))
  }

  /** Inputs that run. */
  get running(): number {
    return this.#works.numbers().running
  }

  /** For metrics. Cheap. */
  numbers(): QueueNumbers {
    return { queues: this.#known.size, ...this.#works.numbers() }
  }

  /** Goes on with what an earlier daemon left. */
  async recover(): Promise<void> {
    const { engine } = this.#options
    for await (const record of kvRecords(engine.kv, QUEUE_PREFIX, queueRecord)) {
      const known: Known = { record, work: this.#works.begin(record) }
      this.#known.set(recordKey(record.project, record.name), known)
      known.work?.wake()
    }
    this.#sweeping = this.#sweep()
  }

  /** Makes a queue, or changes what is given of it. `image`: what the function starts from; null: the daemon's own. */
  async put(
    project: string,
    name: string,
    wanted: QueuePut,
    image: string | null,
  ): Promise<QueueView> {
    const key = recordKey(project, name)
    return await this.#locks.with(key, async () => {
      const { engine, clock } = this.#options
      const before = this.#known.get(key)
      if (!before && this.#known.size >= FUNCTION_LIMITS.queues) {
        throw new SandlotError('rate_limited', `there are ${FUNCTION_LIMITS.queues} queues already`)
      }
      const fresh = {
        ...{ uid: newId('run').slice(3), project, name },
        kind: wanted.kind,
        createdAtMs: clock.now(),
      }
      const definition = wanted.function && functionOf(wanted.function, image)
      const record = changed(before?.record ?? fresh, wanted, definition)
      if (definition) await keepBundle(engine, record.uid, definition.bundle)
      const isSame = before && JSON.stringify(before.record) === JSON.stringify(record)
      // One whose function could not be loaded is tried anew: what it starts from may be another by now.
      if (isSame && !before.work?.fleet.isBroken) {
        return await this.#view(record, before.work)
      }
      await engine.kv.put(key, encodeJson(record))
      if (before?.work) this.#works.retire(before.work)
      const work = this.#works.begin(record)
      this.#known.set(key, { record, work })
      work?.wake()
      return await this.#view(record, work)
    })
  }

  async list(project: string): Promise<QueueView[]> {
    const all = [...this.#known.values()].filter(({ record }) => record.project === project)
    return await Promise.all(all.map(({ record, work }) => this.#view(record, work)))
  }

  async get(project: string, name: string): Promise<QueueView> {
    const { record, work } = this.#find(project, name)
    return await this.#view(record, work)
  }

  async delete(project: string, name: string): Promise<void> {
    const key = recordKey(project, name)
    await this.#locks.with(key, async () => await this.#delete(key, this.#find(project, name)))
  }

  /** Resolves when all of them are durable. */
  async putTasks(
    project: string,
    name: string,
    put: QueueTasksPut,
  ): Promise<{ readonly task: string; readonly duplicate: boolean }[]> {
    const { record, work } = this.#find(project, name)
    const { engine } = this.#options
    const added = await putTasks(engine, record, put)
    work?.wake()
    return added
  }

  async results(
    project: string,
    name: string,
    query: ReadQuery,
    signal: AbortSignal,
  ): Promise<QueueResultsPage> {
    const { record } = this.#find(project, name)
    return await pageOfResults(this.#reading(), record, query, signal)
  }

  async result(
    project: string,
    name: string,
    { task, ...query }: ReadQuery & { readonly task: string },
    signal: AbortSignal,
  ): Promise<QueueResult | null> {
    const { record } = this.#find(project, name)
    return (await resultOfTask(this.#reading(), record, task, query, signal)) ?? null
  }

  async dead(
    project: string,
    name: string,
    page: { readonly after?: string | undefined; readonly limit?: number | undefined },
  ): Promise<{ readonly items: DeadLetter[]; readonly next: string | null }> {
    return await listDead(this.#options.engine, this.#find(project, name).record, page)
  }

  async replay(project: string, name: string, tasks: readonly string[] | undefined) {
    const { record, work } = this.#find(project, name)
    const replayed = await replayDead(this.#options.engine, record, tasks)
    work?.wake()
    return replayed
  }

  /** Begins nothing more: the daemon is about to stop. */
  drain(): void {
    this.#works.drain()
  }

  /** Ends all containers; what they work on is given back. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.drain()
    this.#closing.abort(new SandlotError('draining', 'the daemon is stopping'))
    this.#sweeping?.[Symbol.dispose]()
    await this.#works.close()
  }

  #sweep(): Disposable {
    const { engine, clock, log } = this.#options
    return sweepResults({
      ...{ engine, clock, log },
      queues: () => [...this.#known.values()].map(({ record }) => record),
      keptMs: (record) => this.#keptMs(record),
      remove: async (record) => {
        const key = recordKey(record.project, record.name)
        await this.#locks.with(key, async () => {
          const known = this.#known.get(key)
          if (known?.record === record) await this.#delete(key, known)
        })
      },
    })
  }

  #find(project: string, name: string): Known {
    const known = this.#known.get(recordKey(project, name))
    if (known) return known
    throw new SandlotError(
      'queue_unknown',
      `there is no queue ${JSON.stringify(name.slice(0, 64))}`,
    )
  }

  async #delete(key: string, { record }: Known): Promise<void> {
    const { engine } = this.#options
    this.#known.delete(key)
    await this.#works.end(record.uid)
    await removeAll(engine, record)
    await engine.kv.delete(key)
  }

  #keptMs(record: QueueRecord): number {
    return keptMs(record, this.#options.retainMs)
  }

  async #view(record: QueueRecord, work: QueueWork | undefined): Promise<QueueView> {
    return await viewOf(this.#options.engine, record, { work, keptMs: this.#keptMs(record) })
  }

  #reading(): Reading {
    const { engine, clock } = this.#options
    const { signal: closing } = this.#closing
    return { engine, now: clock.now, news: this.#news, logs: this.#logs, closing }
  }
}
