import {
  newId,
  type RunAttached,
  type RunCreateInput,
  type RunState,
  type RunView,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { pagesOf } from '../connection/pages.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { RemoteFunction } from '../function/remote-function.ts'
import type { Episode } from './episode.ts'
import { OpenRun, openNaming } from './open-run.ts'
import type {
  AttachOptions,
  FunctionRunOptions,
  MapOptions,
  OpenFunctionOptions,
  OpenOptions,
  RunOptions,
} from './options.ts'
import { programNaming } from './own-terms.ts'
import {
  checkBrings,
  checkEpisode,
  type EpisodeInContainers,
  graderOf,
  isProgram,
} from './player.ts'
import type { OpenProgramOptions, Program, ProgramOptions } from './program-options.ts'
import { Run } from './run.ts'
import { RunPart } from './run-part.ts'
import {
  functionSpecification,
  namedOf,
  programSpecification,
  workerSpecification,
} from './specification.ts'
import { listNaming, submitAndClose } from './submission.ts'
import type { TaskNaming } from './task-put.ts'
import { openTasks, type TaskSource } from './tasks.ts'
import { work } from './worker.ts'

export interface ListRuns extends Waiting {
  readonly state?: RunState
}

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
  ): Run
  /**
   * With a function of a module (`client.fn`) as the episode, containers of the daemon call it, and no process is needed: as of
   * `program`, the end of an `await using` block ends nothing of the run.
   */
  map<Task>(
    tasks: Iterable<Task> | AsyncIterable<Task>,
    episode: EpisodeInContainers<Task>,
    options: FunctionRunOptions<Task>,
  ): Run
  map<Task>(
    tasks: Iterable<Task> | AsyncIterable<Task>,
    episode: Episode<Task> | EpisodeInContainers<Task>,
    given: MapOptions<Task> | FunctionRunOptions<Task>,
  ): Run {
    if (episode instanceof RemoteFunction) {
      const { signal: _, ...more } = given as FunctionRunOptions<Task>
      return this.#byItself(tasks, given, (name, signal) =>
        functionSpecification(this.#context, name, episode, { ...more, signal }),
      )
    }
    const options = given as MapOptions<Task>
    const name = nameOf(options)
    const part = new RunPart('cancels', this.#closing, options.signal)
    const created = this.#createWith(tasks, () => {
      checkEpisode(episode)
      return this.#create(part, (signal) =>
        workerSpecification(this.#context, name, { ...options, signal }),
      )
    })
    const naming = programNaming(this.#context, options, {
      ...{ naming: listNaming(options), signal: part.working },
    })
    const submitted = this.#submitAll(created, naming, part)
    created
      .then(({ run }) => this.#work(run, episode, options, part))
      .catch((error) => part.fail(error))
    const exists = created.then(() => undefined)
    return new Run(this.#context, name, { created: exists, submitted, part })
  }

  /**
   * Runs a command for each task, in a sandbox of its own, and grades what that leaves. The daemon does it: as soon as `run.submitted`
   * resolves this process may end, and any process reads the results with `rollouts.get(name)`. The end of an `await using` block ends
   * nothing of it.
   */
  program<Task>(tasks: Iterable<Task> | AsyncIterable<Task>, options: ProgramOptions<Task>): Run {
    return this.#byItself(tasks, options, (name, signal) =>
      programSpecification(this.#context, name, { ...options, signal }),
    )
  }

  /** A run that the daemon sees to alone, once its tasks are there. */
  #byItself<Task>(
    tasks: Iterable<Task> | AsyncIterable<Task>,
    options: RunOptions<Task> & Pick<ProgramOptions<Task>, 'each'>,
    specification: (name: string, signal: AbortSignal) => Promise<RunCreateInput>,
  ): Run {
    const name = nameOf(options)
    const part = new RunPart('leaves', this.#closing, options.signal)
    const created = this.#createWith(tasks, () =>
      this.#create(part, (signal) => specification(name, signal)),
    )
    const naming = programNaming(this.#context, options, {
      ...{ naming: listNaming(options), signal: part.working },
    })
    const submitted = this.#submitAll(created, naming, part)
    const exists = created.then(() => undefined)
    return new Run(this.#context, name, { created: exists, submitted, part })
  }

  /**
   * A run that stays open: tasks are put to it one by one, by any process and for as long as it takes, until it is closed. Opened
   * again under the same name it goes on where it was. Returns at once; with an episode function this process is a worker of it, a
   * program needs none.
   */
  open<Task>(name: string, episode: Episode<Task>, options: OpenOptions<Task>): OpenRun<Task>
  open<Task>(
    name: string,
    episode: EpisodeInContainers<Task>,
    options: OpenFunctionOptions<Task>,
  ): OpenRun<Task>
  open<Task>(name: string, program: Program<Task>, options: OpenProgramOptions<Task>): OpenRun<Task>
  open<Task>(
    name: string,
    episode: Episode<Task> | EpisodeInContainers<Task> | Program<Task>,
    given: OpenOptions<Task> | OpenFunctionOptions<Task> | OpenProgramOptions<Task>,
  ): OpenRun<Task> {
    const options = given as OpenOptions<Task>
    const part = new RunPart('leaves', this.#closing, options.signal)
    const { working: signal } = part
    let naming = openNaming(options)
    let created: Promise<RunView>
    if (episode instanceof RemoteFunction) {
      const more = { ...(given as OpenFunctionOptions<Task>), signal }
      created = this.#create(part, () => functionSpecification(this.#context, name, episode, more))
    } else if (isProgram(episode)) {
      const program = { ...(given as OpenProgramOptions<Task>), ...episode, signal }
      created = this.#create(part, () => programSpecification(this.#context, name, program))
      naming = programNaming(this.#context, program, { naming, signal })
    } else {
      created = this.#create(part, () => {
        checkEpisode(episode)
        return workerSpecification(this.#context, name, { ...options, signal })
      })
      created
        .then((run) => this.#work(run, episode, options, part))
        .catch((error) => part.fail(error))
    }
    const exists = created.then(() => undefined)
    return new OpenRun(this.#context, name, { created: exists, part, naming })
  }

  /**
   * Takes part in a run that another process started: reads it, puts tasks to it while it is open, and with an episode is one more
   * worker of it. What the options name has to be what the run was started with (`run_differs`). Throws `run_unknown`.
   */
  async attach<Task = unknown>(
    name: string,
    episode?: Episode<Task>,
    options: AttachOptions<Task> = {},
  ): Promise<OpenRun<Task>> {
    if (episode !== undefined) checkEpisode(episode)
    const { signal } = options
    const part = new RunPart('leaves', this.#closing, signal)
    const json = await namedOf(this.#context, options)
    const parameters = { name }
    const attached = { parameters, json, signal }
    const { run, needs } = await this.#context.http.json<RunAttached>('attachRun', attached)
    if (episode !== undefined) {
      checkBrings(name, needs, options)
      void this.#work(run, episode, options, part).catch((error) => part.fail(error))
    }
    const created = Promise.resolve()
    return new OpenRun(this.#context, name, { created, part, naming: openNaming(options) })
  }

  /** The run of a name, to read its results or to cancel it; this process does not work on it. Throws `run_unknown`. */
  async get(name: string, { signal }: Waiting = {}): Promise<Run> {
    await this.#context.http.json('getRun', { parameters: { name }, signal })
    const part = new RunPart('leaves', this.#closing)
    return new Run(this.#context, name, { created: Promise.resolve(), part })
  }

  /** All runs, page by page as they are read. */
  list(options: ListRuns = {}): AsyncGenerator<RunView> {
    refuseUnknown(options, ['state', 'signal'])
    const { state, signal } = options
    return pagesOf(this.#context, 'listRuns', signal ? { signal } : {}, { state })
  }

  async #createWith<Task>(
    tasks: Iterable<Task> | AsyncIterable<Task>,
    create: () => Promise<RunView>,
  ): Promise<Created<Task>> {
    const source = await openTasks(tasks)
    try {
      return { run: await create(), source }
    } catch (error) {
      await source.close()
      throw error
    }
  }

  async #create(
    { working: signal }: RunPart,
    specification: (signal: AbortSignal) => Promise<RunCreateInput>,
  ): Promise<RunView> {
    const json = await specification(signal)
    signal.throwIfAborted()
    // Not aborted once begun: a run that nobody knows of could not be cancelled.
    const { run } = await this.#context.http.json<{ run: RunView }>('createRun', { json })
    return run
  }

  /** Submits the tasks of a run that has just been created; a failure is this process's part's. */
  async #submitAll<Task>(
    created: Promise<Created<Task>>,
    naming: TaskNaming<Task>,
    part: RunPart,
  ): Promise<void> {
    try {
      const { run, source } = await created
      if (run.state === 'finished') await source.close()
      else {
        const submission = { run: run.name, tasks: source, naming, signal: part.working }
        await submitAndClose(this.#context, submission)
      }
    } catch (error) {
      part.fail(error)
      throw error
    }
  }

  /** Until the run is over, or this process has no part in it any more. */
  async #work<Task>(
    run: RunView,
    episode: Episode<Task>,
    options: AttachOptions<Task>,
    part: RunPart,
  ): Promise<void> {
    if (run.state === 'finished') return
    await work(this.#context, {
      run: run.name,
      signal: part.working,
      slots: options.concurrency ?? run.concurrency,
      code: { episode, grader: graderOf(options) },
    })
  }
}

interface Created<Task> {
  readonly run: RunView
  readonly source: TaskSource<Task>
}

function nameOf({ name }: Pick<RunOptions<unknown>, 'name'>): string {
  return name ?? `run-${newId('run').slice(3)}`
}
