import { joinSignals, unlessAborted } from '../connection/signals.ts'
import { ModelError } from './model-error.ts'
import { causesOf, UNREADABLE } from './report.ts'

export interface ModelHooks {
  /** The model's time starts and ends: the platform stops the agent's clock. */
  readonly modelStarted: () => void
  readonly modelEnded: () => void
}

export type ModelCall = <T>(call: (options: { signal: AbortSignal }) => Promise<T>) => Promise<T>

/** Time spent in calls of the model; calls that overlap count once. */
export class ModelClock {
  /** The last call that failed, while no later one succeeded. */
  failure: ModelError | undefined
  readonly #hooks: ModelHooks
  #running = 0
  #startedMs = 0
  #totalMs = 0

  constructor(hooks: ModelHooks) {
    this.#hooks = hooks
  }

  totalMs(): number {
    return this.#totalMs + (this.#running > 0 ? performance.now() - this.#startedMs : 0)
  }

  /** `ctx.model` of an attempt whose signal this is. */
  wrap(timeoutMs: number, signal: AbortSignal): ModelCall {
    return async (call) => {
      using joined = joinSignals(signal)
      const expiry = new ModelError(`the model did not answer in ${timeoutMs} ms`)
      const timer = setTimeout(() => joined.abort(expiry), timeoutMs)
      this.#enter()
      try {
        const answer = await unlessAborted(call({ signal: joined.signal }), joined.signal)
        this.failure = undefined
        return answer
      } catch (cause) {
        if (signal.aborted) throw cause
        this.failure = joined.signal.aborted ? expiry : asModelError(cause)
        throw this.failure
      } finally {
        clearTimeout(timer)
        this.#leave()
      }
    }
  }

  #enter(): void {
    if (this.#running++ === 0) {
      this.#startedMs = performance.now()
      this.#hooks.modelStarted()
    }
  }

  #leave(): void {
    if (--this.#running === 0) {
      this.#totalMs += performance.now() - this.#startedMs
      this.#hooks.modelEnded()
    }
  }
}

function asModelError(cause: unknown): ModelError {
  return cause instanceof ModelError
    ? cause
    : new ModelError(`the call of the model failed: ${rootOf(cause)}`, { cause })
}

/** `fetch` says that it failed, and why only in the cause of its error. */
function rootOf(cause: unknown): string {
  try {
    return causesOf(cause).at(-1) ?? ''
  } catch {
    return UNREADABLE
  }
}
