import { onAbort } from './on-abort.ts'

export interface Deadline extends Disposable {
  /** Aborts with a `TimeoutError` when the time is over, or with another's reason before. */
  readonly signal: AbortSignal
}

/**
 * A signal for work that has `ms` milliseconds, where that is given, and no longer than others allow. Dispose of it with the work: `AbortSignal.timeout`
 * keeps its signal, and whatever listens there, until the time is over, however early the work was done.
 */
export function deadline(
  ms: number | undefined,
  ...others: readonly (AbortSignal | undefined)[]
): Deadline {
  const controller = new AbortController()
  const late = () => new DOMException(`not done within ${ms} ms`, 'TimeoutError')
  const timer = ms === undefined ? undefined : setTimeout(() => controller.abort(late()), ms)
  timer?.unref()
  const leaves = others.map((other) => {
    if (other?.aborted) controller.abort(other.reason)
    return other?.aborted ? undefined : onAbort(other, () => controller.abort(other?.reason))
  })
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      for (const leave of leaves) leave?.()
    },
  }
}
