import {
  LIMITS,
  type ResultRow,
  type ResultsPage,
  type RunReport,
  type RunView,
  SandlotError,
} from '@sandlot/protocol'
import { request, requestJson } from '../connection/http.ts'
import type { Waiting } from '../sandbox/files.ts'
import type { SandboxContext } from '../sandbox/sandbox.ts'

export interface ResultsOptions extends Waiting {
  /** Cursor of the last row that was handled, saved with a checkpoint; default: from the first. */
  readonly from?: string
}

const ROWS_PER_PAGE = 500

/**
 * All episodes of one call. `for await (const row of run)` reads its results in the order of their completion, each episode
 * once; leaving the loop only stops reading. `await using` cancels what is not over.
 */
export class Run implements AsyncIterable<ResultRow>, AsyncDisposable {
  readonly name: string
  /** Resolves when the run exists; rejects with what was wrong with it. */
  readonly created: Promise<void>
  readonly #context: SandboxContext
  readonly #close: () => void
  readonly #failed: Promise<never>

  /** Made by `client.rollouts`. `failed` rejects when submission or work of this process failed. */
  constructor(
    context: SandboxContext,
    name: string,
    life: { created: Promise<void>; failed: Promise<never>; close: () => void },
  ) {
    this.name = name
    this.created = life.created
    this.#context = context
    this.#failed = life.failed
    this.#close = life.close
    this.created.catch(() => undefined)
    this.#failed.catch(() => undefined)
  }

  [Symbol.asyncIterator](): AsyncIterator<ResultRow> {
    return this.results()
  }

  /** Results as they complete, from a cursor, until the run is over. Errors of the submission reject the first read. */
  async *results(options: ResultsOptions = {}): AsyncGenerator<ResultRow> {
    let after = options.from
    await this.created
    for (;;) {
      const page = await Promise.race([this.#page(after, options.signal), this.#failed])
      for (const row of page.rows) {
        after = row.cursor
        yield row
      }
      if (page.done) {
        this.#close()
        return
      }
    }
  }

  /** All results, when the run is over. */
  async wait(options: Waiting = {}): Promise<ResultRow[]> {
    const rows: ResultRow[] = []
    for await (const row of this.results(options)) rows.push(row)
    return rows
  }

  /** How it stands. */
  async view(options: Waiting = {}): Promise<RunView> {
    await this.created
    return await this.#json<RunView>('getRun', options)
  }

  /** Throughput, latency per phase, outcomes, and what limits it. */
  async report(options: Waiting = {}): Promise<RunReport> {
    await this.created
    return await this.#json<RunReport>('getReport', options)
  }

  /** Ends all episodes that are not over; their outcome is `cancelled_user`. Idempotent. */
  async cancel(options: Waiting = {}): Promise<RunView> {
    return await this.#json<RunView>('cancelRun', options)
  }

  /** Starts no more attempts until `resume`. */
  async pause(options: Waiting = {}): Promise<RunView> {
    return await this.#json<RunView>('pauseRun', options)
  }

  async resume(options: Waiting = {}): Promise<RunView> {
    return await this.#json<RunView>('resumeRun', options)
  }

  /** Removes a finished run with its results. */
  async delete(options: Waiting = {}): Promise<void> {
    const parameters = { name: this.name }
    await request(await this.#context.endpoint(), 'deleteRun', {
      parameters,
      signal: options.signal,
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.cancel()
    } catch (error) {
      // A run that never came to be, or is over and deleted, has nothing to cancel.
      if (!(error instanceof SandlotError && error.code === 'run_unknown')) throw error
    } finally {
      this.#close()
    }
  }

  async #page(after: string | undefined, signal: AbortSignal | undefined): Promise<ResultsPage> {
    return await requestJson<ResultsPage>(await this.#context.endpoint(), 'getResults', {
      parameters: { name: this.name },
      query: { after, limit: ROWS_PER_PAGE, wait: LIMITS.waitMs },
      signal,
    })
  }

  async #json<T>(
    route: 'getRun' | 'getReport' | 'cancelRun' | 'pauseRun' | 'resumeRun',
    { signal }: Waiting,
  ): Promise<T> {
    const parameters = { name: this.name }
    return await requestJson<T>(await this.#context.endpoint(), route, { parameters, signal })
  }
}
