import { newId, type RunView } from '@sandlot/protocol'
import { requestJson } from '../connection/http.ts'
import type { Waiting } from '../sandbox/files.ts'
import type { SandboxContext } from '../sandbox/sandbox.ts'
import type { Episode } from './episode.ts'
import { CONCURRENCY_DEFAULT, isFunctionGrade, type MapOptions } from './options.ts'
import { Run } from './run.ts'
import { specificationOf } from './specification.ts'
import { checkTasks, submitTasks } from './submission.ts'
import { work } from './worker.ts'

/** `client.rollouts`. */
export class Rollouts {
  readonly #context: SandboxContext
  /** Ends all workers of the client when it is closed. */
  readonly #signal: AbortSignal

  constructor(context: SandboxContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
  }

  /**
   * Runs one episode for each task, `concurrency` at a time, each in its own sandbox, and grades it.
   * Returns at once; errors of the submission reject the first await on the run. This process is the worker: its function is
   * called for each attempt.
   */
  map<Task>(
    tasks: Iterable<Task> | AsyncIterable<Task>,
    episode: Episode<Task>,
    options: MapOptions<Task>,
  ): Run {
    const name = options.name ?? `run-${newId('run').slice(3)}`
    const own = new AbortController()
    const signal = AbortSignal.any([
      own.signal,
      this.#signal,
      ...(options.signal ? [options.signal] : []),
    ])
    const created = this.#create(name, tasks, episode, options)
    const working = created.then(async (run) => {
      if (run.state === 'finished') return
      await Promise.all([
        this.#submit(name, tasks, { ...options, signal }),
        work(this.#context, {
          run: name,
          slots: options.concurrency ?? CONCURRENCY_DEFAULT,
          episode,
          grader: options.grade && isFunctionGrade(options.grade) ? options.grade.run : undefined,
          signal,
        }),
      ])
    })
    const failed = new Promise<never>((_, reject) => {
      working.catch((error) => {
        own.abort(error)
        reject(error)
      })
    })
    return new Run(this.#context, name, {
      created: created.then(() => undefined),
      failed,
      close: () => own.abort(new Error('the run was closed')),
    })
  }

  /** The run of a name, to read its results or to cancel it; this process does not work on it. Throws `run_unknown`. */
  async get(name: string, options: Waiting = {}): Promise<Run> {
    const parameters = { name }
    await requestJson(await this.#context.endpoint(), 'getRun', {
      parameters,
      signal: options.signal,
    })
    const never = new Promise<never>(() => undefined)
    return new Run(this.#context, name, {
      created: Promise.resolve(),
      failed: never,
      close: () => undefined,
    })
  }

  /** All runs, page by page as they are read. */
  async *list(options: Waiting = {}): AsyncGenerator<RunView> {
    let after: string | undefined
    do {
      const page: { items: RunView[]; next: string | null } = await requestJson(
        await this.#context.endpoint(),
        'listRuns',
        { query: { after }, signal: options.signal },
      )
      yield* page.items
      after = page.next ?? undefined
    } while (after)
  }

  async #create<Task>(
    name: string,
    tasks: unknown,
    episode: unknown,
    options: MapOptions<Task>,
  ): Promise<RunView> {
    checkTasks(tasks)
    if (typeof episode !== 'function') throw new TypeError('the episode is not a function')
    const json = await specificationOf(this.#context, name, options)
    const { run } = await requestJson<{ run: RunView }>(
      await this.#context.endpoint(),
      'createRun',
      {
        json,
        signal: options.signal,
      },
    )
    return run
  }

  async #submit<Task>(
    name: string,
    tasks: Iterable<Task> | AsyncIterable<Task>,
    options: MapOptions<Task>,
  ): Promise<void> {
    await submitTasks(this.#context, name, tasks, options)
    const parameters = { name }
    await requestJson(await this.#context.endpoint(), 'closeRun', {
      parameters,
      signal: options.signal,
    })
  }
}
