import {
  type EpisodeItem,
  type EpisodeState,
  type EpisodeView,
  type GroupsPage,
  LIMITS,
  type Outcome,
  type ResultGroup,
  type ResultRow,
  type ResultsPage,
  type RunReport,
  type RunView,
  SandlotError,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { isCode } from '../connection/failure.ts'
import { pagesOf } from '../connection/pages.ts'
import { joinSignals } from '../connection/signals.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { getBytes, getJson } from '../image/blob.ts'
import {
  type Batch,
  type BatchOptions,
  eachGroup,
  type GroupsOptions,
  nextBatch,
  type PageQuery,
} from './groups.ts'
import type { RunPart } from './run-part.ts'

export interface ResultsOptions extends Waiting {
  /** Cursor of the last row that was handled, saved with a checkpoint; default: from the first. */
  readonly from?: string
  /** Also the rows that the policy `drop` leaves out. */
  readonly dropped?: boolean
  /** False: ends with what is there now. Default: waits until the run is over. */
  readonly wait?: boolean
}

export interface EpisodesOptions extends Waiting {
  readonly state?: EpisodeState
  /** Only of those that are done. */
  readonly outcome?: Outcome
}

const ROWS_PER_PAGE = 500

export interface RunParts {
  readonly created: Promise<void>
  /** Default: there is nothing to submit. */
  readonly submitted?: Promise<void>
  readonly part: RunPart
}

/**
 * The episodes of one run. `for await (const row of run)` reads its results in the order of their completion, each episode
 * once; leaving the loop only stops reading. The end of an `await using` block cancels what `map` started; any other run goes on.
 */
export class Run implements AsyncIterable<ResultRow>, AsyncDisposable {
  readonly name: string
  /** Resolves when the run exists; rejects with what was wrong with it. */
  readonly created: Promise<void>
  /**
   * Resolves when all tasks that this process was given are in the run: from then on a run of programs needs it no more. Rejects where
   * that failed.
   */
  readonly submitted: Promise<void>
  protected readonly context: ClientContext
  readonly #part: RunPart
  /** Of the last batch. */
  #batchCursor: string | undefined

  /** Made by `client.rollouts`. */
  constructor(context: ClientContext, name: string, { created, submitted, part }: RunParts) {
    this.name = name
    this.created = created
    this.submitted = submitted ?? created
    this.context = context
    this.#part = part
    this.created.catch(() => undefined)
    this.submitted.catch(() => undefined)
  }

  [Symbol.asyncIterator](): AsyncIterator<ResultRow> {
    return this.results()
  }

  /**
   * Results as they complete, from a cursor, until the run is over. What this process could not do for the run, submit a task or
   * work on it, rejects the read that waits.
   */
  async *results(options: ResultsOptions = {}): AsyncGenerator<ResultRow> {
    refuseUnknown(options, ['from', 'dropped', 'wait', 'signal'])
    await this.exists()
    let after = options.from
    for (;;) {
      const query = { after, limit: ROWS_PER_PAGE }
      const page = await this.#page<ResultsPage>('getResults', query, options)
      for (const row of page.rows) {
        after = row.cursor
        if (options.dropped || !row.dropped) yield row
      }
      if (page.done || (options.wait === false && page.rows.length === 0)) return
    }
  }

  /**
   * Groups as they are complete, each with the results that count in it, from a cursor, until the run is over. For a run that was
   * started with `group`. A trainer that takes several at once calls `batch`.
   */
  async *groups(options: GroupsOptions = {}): AsyncGenerator<ResultGroup> {
    refuseUnknown(options, ['from', 'all', 'signal'])
    await this.exists()
    yield* eachGroup(this.#askGroups, options)
  }

  /** Waits for the next `count` complete groups: what one step of training takes. At the end of the run there are fewer, then none. */
  async batch(count: number, options: BatchOptions = {}): Promise<Batch> {
    refuseUnknown(options, ['from', 'signal'])
    await this.exists()
    const from = options.from ?? this.#batchCursor
    const batch = await nextBatch(this.#askGroups, count, {
      ...options,
      ...(from === undefined ? {} : { from }),
    })
    this.#batchCursor = batch.cursor
    return batch
  }

  /**
   * Says that the policy is of this version from now on: attempts that begin are told, rows say with which theirs began. With
   * `group.maxLag` those that lag too far behind it end as `cancelled_stale`.
   */
  async setPolicyVersion(version: number, options: Waiting = {}): Promise<RunView> {
    await this.exists()
    const { signal } = options
    const parameters = { name: this.name }
    return await this.context.http.json<RunView>('setPolicyVersion', {
      ...{ parameters, json: { version }, signal },
    })
  }

  /** All results, when the run is over. */
  async wait(options: ResultsOptions = {}): Promise<ResultRow[]> {
    const rows: ResultRow[] = []
    for await (const row of this.results(options)) rows.push(row)
    return rows
  }

  /** What an episode returned as `data`, also where it is too large to stand in its row. */
  async data(row: ResultRow, options: Waiting = {}): Promise<unknown> {
    if (row.dataBlob === null) return row.data
    return await getJson(this.context, row.dataBlob, options)
  }

  /** What an episode left under this name; `log` are the lines of its log. Throws `not_found` where it left none. */
  async artifact(row: ResultRow, name: string, options: Waiting = {}): Promise<Uint8Array> {
    const found = row.artifacts.find((artifact) => artifact.name === name)
    if (found) return await getBytes(this.context, found.blob, options)
    const names = row.artifacts.map((artifact) => artifact.name).join(', ')
    throw new SandlotError('not_found', `the episode ${row.key} left no artifact ${name}`, {
      hint: names === '' ? 'It left none at all.' : `It left: ${names}.`,
    })
  }

  /** Its episodes: those that are not done as they stand, then the others in the order of their results. */
  async *episodes(options: EpisodesOptions = {}): AsyncGenerator<EpisodeItem> {
    refuseUnknown(options, ['state', 'outcome', 'signal'])
    await this.exists()
    const { state, outcome, signal } = options
    const waiting = signal ? { signal } : {}
    const parameters = { name: this.name }
    yield* pagesOf(this.context, 'listEpisodes', waiting, { state, outcome }, parameters)
  }

  /** One of them, by its key or its id: where it stands, what it waits for, how it ended. Throws `not_found`. */
  async episode(key: string, { signal }: Waiting = {}): Promise<EpisodeView> {
    await this.exists()
    const parameters = { name: this.name, key }
    return await this.context.http.json<EpisodeView>('getEpisode', { parameters, signal })
  }

  /** How it stands. */
  async view(options: Waiting = {}): Promise<RunView> {
    return await this.#ask<RunView>('getRun', options)
  }

  /** Throughput, latency per phase, outcomes, and what limits it. */
  async report(options: Waiting = {}): Promise<RunReport> {
    return await this.#ask<RunReport>('getReport', options)
  }

  /** Ends all episodes that are not over; their outcome is `cancelled_user`. Idempotent. */
  async cancel(options: Waiting = {}): Promise<RunView> {
    await this.created
    return await this.#json<RunView>('cancelRun', options)
  }

  /** Starts no more attempts until `resume`. */
  async pause(options: Waiting = {}): Promise<RunView> {
    return await this.#ask<RunView>('pauseRun', options)
  }

  async resume(options: Waiting = {}): Promise<RunView> {
    return await this.#ask<RunView>('resumeRun', options)
  }

  /** Removes a finished run with its results. */
  async delete({ signal }: Waiting = {}): Promise<void> {
    await this.created
    await this.context.http.send('deleteRun', { parameters: { name: this.name }, signal })
  }

  /** Leaves the run; cancels what is not over where `map` started it. Throws a failure that nobody has met yet, so that none passes in silence. */
  async [Symbol.asyncDispose](): Promise<void> {
    const untold = this.#part.takeUntold()
    this.#part.close()
    if (this.#part.cancels) await this.#cancelIfThere()
    if (untold) throw untold
  }

  async #cancelIfThere(): Promise<void> {
    const exists = await this.created.then(
      () => true,
      () => false,
    )
    if (exists) {
      await this.#json('cancelRun', {}).catch((error) => {
        // One that is over and deleted has nothing to cancel.
        if (!isCode(error, 'run_unknown')) throw error
      })
    }
  }

  /** Throws what was wrong with the run, or with this process's part in it. */
  protected async exists(): Promise<void> {
    this.#part.check()
    try {
      await this.created
    } catch (error) {
      this.#part.check()
      throw error
    }
    this.#part.check()
  }

  readonly #askGroups = (query: PageQuery, waiting: Waiting) =>
    this.#page<GroupsPage>('getGroups', query, waiting)

  /** The next page, waited for. With the last one this process has no more part in the run. */
  async #page<Page extends { done: boolean }>(
    route: 'getResults' | 'getGroups',
    query: PageQuery,
    { signal, wait = true }: Waiting & { readonly wait?: boolean },
  ): Promise<Page> {
    using joined = joinSignals(signal, this.#part.failed)
    try {
      const page = await this.context.http.json<Page>(route, {
        parameters: { name: this.name },
        query: { ...query, wait: wait ? LIMITS.waitMs : 0 },
        signal: joined.signal,
      })
      if (page.done) this.#part.close()
      return page
    } catch (error) {
      this.#part.check()
      throw error
    }
  }

  async #ask<T>(route: RunRoute, options: Waiting): Promise<T> {
    await this.exists()
    return await this.#json<T>(route, options)
  }

  async #json<T>(route: RunRoute | 'cancelRun', { signal }: Waiting): Promise<T> {
    return await this.context.http.json<T>(route, { parameters: { name: this.name }, signal })
  }
}

type RunRoute = 'getRun' | 'getReport' | 'pauseRun' | 'resumeRun'
