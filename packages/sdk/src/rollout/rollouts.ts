import { newId, type RunView, SandlotError } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { isCode } from '../connection/failure.ts'
import { pagesOf } from '../connection/pages.ts'
import type { Episode } from './episode.ts'
import { CONCURRENCY_DEFAULT, isFunctionGrade, type MapOptions } from './options.ts'
import { Run } from './run.ts'
import { RunPart } from './run-part.ts'
import { specificationOf } from './specification.ts'
import { submitTasks } from './submission.ts'
import { describeValue, openTasks, type TaskSource } from './tasks.ts'
import { work } from './worker.ts'

/** `client.rollouts`. */
export class Rollouts {
  readonly #context: ClientContext
  /** Aborted when the client is closed. */
  readonly #closing: AbortSignal

  constructor(context: ClientContext, closing: AbortSignal) {
    this.#context = context
    this.#closing = closing
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
    const part = new RunPart(this.#closing, options.signal)
    const created = this.#create(name, tasks, episode, { options, part })
    created
      .then(async ({ run, source }) => {
        if (run.state === 'finished') return await source.close()
        const leased = { run: name, signal: part.working }
        await Promise.all([
          this.#submit({ ...leased, tasks: source, options }),
          work(this.#context, {
            ...leased,
            slots: options.concurrency ?? CONCURRENCY_DEFAULT,
            code: {
              episode,
              grader:
                options.grade && isFunctionGrade(options.grade) ? options.grade.run : undefined,
            },
          }),
        ])
      })
      .catch((error) => part.fail(error))
    const exists = created.then(() => undefined)
    return new Run(this.#context, name, exists, part)
  }

  /** The run of a name, to read its results or to cancel it; this process does not work on it. Throws `run_unknown`. */
  async get(name: string, { signal }: Waiting = {}): Promise<Run> {
    await this.#context.http.json('getRun', { parameters: { name }, signal })
    return new Run(this.#context, name, Promise.resolve(), new RunPart(this.#closing))
  }

  /** All runs, page by page as they are read. */
  list(waiting: Waiting = {}): AsyncGenerator<RunView> {
    return pagesOf(this.#context, 'listRuns', waiting)
  }

  async #create<Task>(
    name: string,
    tasks: Iterable<Task> | AsyncIterable<Task>,
    episode: unknown,
    { options, part }: { readonly options: MapOptions<Task>; readonly part: RunPart },
  ): Promise<{ run: RunView; source: TaskSource<Task> }> {
    if (typeof episode !== 'function') {
      const message = `the episode is ${describeValue(episode)}, not a function`
      throw new SandlotError('invalid_request', message, { hint: 'Pass `async (context) => …`.' })
    }
    const source = await openTasks(tasks)
    try {
      const signal = part.working
      const json = await specificationOf(this.#context, name, { ...options, signal })
      signal.throwIfAborted()
      // Not aborted once begun: a run that nobody knows of could not be cancelled.
      const { run } = await this.#context.http.json<{ run: RunView }>('createRun', { json })
      return { run, source }
    } catch (error) {
      await source.close()
      throw error
    }
  }

  /** Adds all tasks and says that no more come. */
  async #submit<Task>(submission: Parameters<typeof submitTasks<Task>>[1]): Promise<void> {
    const { run: name, tasks, signal } = submission
    try {
      await submitTasks(this.#context, submission)
      await this.#context.http.json('closeRun', { parameters: { name }, signal })
    } catch (error) {
      if (!isCode(error, 'run_closed') || !(await this.#isEnding(name, signal))) throw error
    } finally {
      await tasks.close()
    }
  }

  /** Somebody cancelled it meanwhile: what is missing would only be cancelled too. */
  async #isEnding(name: string, signal: AbortSignal): Promise<boolean> {
    const parameters = { name }
    const { state } = await this.#context.http.json<RunView>('getRun', { parameters, signal })
    return state === 'cancelling' || state === 'finished'
  }
}
