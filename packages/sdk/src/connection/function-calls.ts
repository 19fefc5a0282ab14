/** Functions of this process that the daemon asks for while it works. */
import { type FunctionLine, LIMITS } from '@sandlot/protocol'
import type { ClientContext } from './context.ts'
import { isCode, isOutage } from './failure.ts'
import { unlessAborted } from './signals.ts'

/** Does what a line asks for. */
export type RunFunction = (line: FunctionLine) => Promise<void>

export class FunctionCalls {
  readonly #context: ClientContext
  readonly #run: RunFunction
  readonly #broken = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #failure: { readonly error: unknown } | undefined

  constructor(context: ClientContext, run: RunFunction) {
    this.#context = context
    this.#run = run
  }

  /** Aborts where the daemon can't be told how one ended, and would wait for it. */
  get broken(): AbortSignal {
    return this.#broken.signal
  }

  /** What the last one failed with. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure
  }

  begin(line: FunctionLine): void {
    this.#failure = undefined
    this.#running = this.#call(line)
  }

  /** Until none runs: it would be asked for again. */
  async settled(signal: AbortSignal | undefined): Promise<void> {
    await unlessAborted(this.#running, signal)
  }

  async #call(line: FunctionLine): Promise<void> {
    try {
      await this.#run(line)
    } catch (error) {
      this.#failure = { error }
    }
    const error = this.#failure && said(this.#failure.error)
    try {
      const parameters = { id: line.sandbox }
      await this.#context.http.send('finishFunction', { parameters, json: { error } })
    } catch (error) {
      // The daemon is away, or waits for it no more: its answer tells that by itself.
      if (!isOutage(error) && !isCode(error, 'sandbox_unknown')) this.#broken.abort(error)
    }
  }
}

function said(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.slice(0, LIMITS.causeLength).toWellFormed()
}
