import {
  type DeadLetter,
  LIMITS,
  type QueuePutInput,
  type QueueResultsPage,
  type QueueTasksPut,
  type QueueView,
  SandlotError,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { pagesOf } from '../connection/pages.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { encodeInput } from '../function/encode-input.ts'
import { errorOf, readValue } from '../function/function-error.ts'
import type { RemoteFunction } from '../function/remote-function.ts'
import { getJson } from '../image/blob.ts'
import type {
  DeadTask,
  PutManyOptions,
  PutOptions,
  QueueOptions,
  QueueResultsOptions,
  QueueRow,
} from './options.ts'

/** How long it is waited for a row before it is looked whether any can come. */
const LOOK_MS = 1_000

/**
 * Tasks that wait on the daemon's disk until a container of the function takes them. A task that was put is there whatever is killed, is
 * begun at least once, and has one result.
 */
export class TaskQueue<Input, Output> {
  readonly name: string
  readonly #context: ClientContext
  readonly #function: RemoteFunction<Input, Output> | undefined
  readonly #options: QueueOptions
  #made: Promise<QueueView> | undefined

  /** Made by `client.queue`, and by `client.queues.get` for one that is there. */
  constructor(
    context: ClientContext,
    name: string,
    worker: RemoteFunction<Input, Output> | undefined,
    options: QueueOptions,
    known?: QueueView,
  ) {
    refuseUnknown(options, ['autoscale', 'retry', 'retain'])
    this.name = name
    this.#context = context
    this.#function = worker
    this.#options = options
    if (known) this.#made = Promise.resolve(known)
  }

  /**
   * Makes the queue, or gives it this function and these options. All others do so by themselves, once; without a function or options only
   * what puts tasks does, and the others throw `queue_unknown` where there is none.
   */
  open(): Promise<QueueView> {
    this.#made ??= this.#make().catch((error) => {
      this.#made = undefined
      throw error
    })
    return this.#made
  }

  /** Resolves once the task is durable. */
  async put(
    input: Input,
    options: PutOptions = {},
  ): Promise<{ readonly task: string; readonly duplicate: boolean }> {
    refuseUnknown(options, ['key', 'priority', 'delay'])
    await this.open()
    const encoded = await encodeInput(this.#context, input, 'the task')
    const [added] = await this.#put([taskOf(encoded, options)])
    return added as { task: string; duplicate: boolean }
  }

  /**
   * Puts a list or a stream of inputs. Resolves once all are durable: `added` are new tasks, `known` those of a key that stood already.
   * Where one is refused, those before it may be in the queue: with `key` they are known when they are put again.
   */
  async putMany(
    inputs: Iterable<Input> | AsyncIterable<Input>,
    options: PutManyOptions<Input> = {},
  ): Promise<{ readonly added: number; readonly known: number }> {
    refuseUnknown(options, ['key', 'priority', 'delay', 'signal'])
    await this.open()
    const { key, priority, delay, signal } = options
    const waiting = signal ? { signal } : {}
    const total = { added: 0, known: 0 }
    let batch: QueueTasksPut['tasks'] = []
    let sizeBytes = 0
    const flush = async () => {
      for (const { duplicate } of await this.#put(batch, waiting)) {
        total[duplicate ? 'known' : 'added'] += 1
      }
      batch = []
      sizeBytes = 0
    }
    let index = 0
    for await (const input of inputs) {
      const encoded = await encodeInput(this.#context, input, `task ${index}`, waiting)
      const own: PutOptions = {
        ...(key ? { key: key(input, index) } : {}),
        ...ownOf('delay', delay, input, index),
        ...ownOf('priority', priority, input, index),
      }
      batch.push(taskOf(encoded, own))
      sizeBytes += 'json' in encoded ? 2 * encoded.json.length : 200
      index += 1
      if (batch.length >= LIMITS.tasksPerRequest || sizeBytes > LIMITS.bodyBytes / 2) await flush()
    }
    if (batch.length > 0) await flush()
    return total
  }

  /** How tasks ended, in the order in which they did, from a cursor. A task that failed after its retries is a row too. */
  async *results(options: QueueResultsOptions = {}): AsyncGenerator<QueueRow<Output>> {
    refuseUnknown(options, ['from', 'until', 'signal'])
    const { signal, until } = options
    if (until !== undefined && until !== 'empty') {
      const shown = JSON.stringify(until)
      throw new SandlotError('invalid_request', `until is ${shown}: say 'empty', or leave it out`)
    }
    await this.#openOwn()
    const waiting = signal ? { signal } : {}
    let after = options.from
    let isEmpty = false
    for (;;) {
      const wait = isEmpty ? 0 : until === undefined ? LIMITS.waitMs : LOOK_MS
      const page = await this.#page({ after, wait }, waiting)
      for (const result of page.results) {
        const { cursor, task, key, attempts, startedAtMs, endedAtMs } = result
        after = cursor
        const row = { cursor, task, key, attempts, startedAtMs, endedAtMs }
        if (result.error) yield { ...row, ok: false, error: errorOf(result.error) }
        else {
          const value = (await readValue(this.#context, result, waiting)) as Output
          yield { ...row, ok: true, value }
        }
      }
      if (page.results.length > 0) continue
      if (isEmpty) return
      isEmpty = until === 'empty' && (await this.#hasEnded(waiting))
    }
  }

  /** Tasks that failed after their last retry, kept until they are replayed. */
  async *deadLetters(waiting: Waiting = {}): AsyncGenerator<DeadTask<Input>> {
    await this.#openOwn()
    const parameters = { name: this.name }
    const letters = pagesOf<DeadLetter>(this.#context, 'listDeadLetters', waiting, {}, parameters)
    for await (const { json, blob, error, task, key, attempts, diedAtMs } of letters) {
      const input =
        blob === null
          ? json === null
            ? undefined
            : JSON.parse(json)
          : await getJson(this.#context, blob, waiting)
      yield { task, key, attempts, diedAtMs, input: input as Input, error: errorOf(error) }
    }
  }

  /** Puts dead letters back, by the ids of their tasks, or all. Returns how many. */
  async replay(tasks?: readonly string[], { signal }: Waiting = {}): Promise<number> {
    await this.#openOwn()
    const { replayed } = await this.#context.http.json<{ replayed: number }>('replayDeadLetters', {
      parameters: { name: this.name },
      json: tasks === undefined ? {} : { tasks },
      signal,
    })
    return replayed
  }

  /** How it stands. */
  async view({ signal }: Waiting = {}): Promise<QueueView> {
    await this.#openOwn()
    const parameters = { name: this.name }
    return await this.#context.http.json<QueueView>('getQueue', { parameters, signal })
  }

  /** Removes it with its tasks, results and dead letters. */
  async delete({ signal }: Waiting = {}): Promise<void> {
    this.#made = undefined
    await this.#context.http.send('deleteQueue', { parameters: { name: this.name }, signal })
  }

  /** Whoever only names a queue looks for one that is there: a name that is mistyped is `queue_unknown`, and no empty queue. */
  async #openOwn(): Promise<void> {
    if (this.#function || Object.keys(this.#options).length > 0) await this.open()
  }

  async #make(): Promise<QueueView> {
    const worker = this.#function && (await this.#function.deploy())
    const json: QueuePutInput = {
      kind: 'tasks',
      ...this.#options,
      ...(worker ? { function: worker.function } : {}),
    }
    return await this.#context.http.json<QueueView>('putQueue', {
      ...{ parameters: { name: this.name }, json },
    })
  }

  async #hasEnded(waiting: Waiting): Promise<boolean> {
    const { ready, delayed, running } = (await this.view(waiting)).tasks
    return ready + delayed + running === 0
  }

  async #put(tasks: QueueTasksPut['tasks'], { signal }: Waiting = {}) {
    const added = await this.#context.http.json<{ tasks: { task: string; duplicate: boolean }[] }>(
      'putQueueTasks',
      { parameters: { name: this.name }, json: { tasks }, signal },
    )
    return added.tasks
  }

  async #page(
    query: { readonly after: string | undefined; readonly wait: number },
    { signal }: Waiting,
  ): Promise<QueueResultsPage> {
    return await this.#context.http.json<QueueResultsPage>('getQueueResults', {
      parameters: { name: this.name },
      query: { ...query, limit: LIMITS.rowsPerPage },
      signal,
    })
  }
}

/** Under an id of its own: sent again after a lost answer, it is the same task. */
/** An option that is the same for all inputs, or each one's own. */
function ownOf<Name extends string, Value extends string | number, Input>(
  name: Name,
  given: Value | ((input: Input, index: number) => Value) | undefined,
  input: Input,
  index: number,
): { readonly [Each in Name]?: Value } {
  if (given === undefined) return {}
  const value = typeof given === 'function' ? given(input, index) : given
  return { [name]: value } as { readonly [Each in Name]?: Value }
}

function taskOf(
  encoded: object,
  { key, priority, delay }: PutOptions,
): QueueTasksPut['tasks'][number] {
  return {
    id: crypto.randomUUID(),
    ...encoded,
    ...(key === undefined ? {} : { key }),
    ...(priority === undefined ? {} : { priority }),
    ...(delay === undefined ? {} : { delay: delay as number }),
  }
}
