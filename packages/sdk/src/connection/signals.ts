import { toError } from './failure.ts'

/** A signal that follows others for as long as one call takes, and leaves no listener behind. */
export interface JoinedSignal extends Disposable {
  readonly signal: AbortSignal
  abort(reason: unknown): void
}

/** Aborted with the first of them. `AbortSignal.any` would stay with its sources for as long as they live. */
export function joinSignals(...sources: (AbortSignal | undefined)[]): JoinedSignal {
  const controller = new AbortController()
  const releases: (() => void)[] = []
  for (const source of sources) {
    if (!source) continue
    if (source.aborted) {
      controller.abort(source.reason)
      break
    }
    const follow = () => controller.abort(source.reason)
    source.addEventListener('abort', follow, { once: true })
    releases.push(() => source.removeEventListener('abort', follow))
  }
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    [Symbol.dispose]: () => {
      for (const release of releases) release()
    },
  }
}

/** What `work` comes to, or the signal's reason as soon as it is aborted; `work` itself goes on. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    const stop = () => reject(toError(signal.reason))
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    const release = () => signal.removeEventListener('abort', stop)
    work.then(
      (value) => {
        release()
        resolve(value)
      },
      (error) => {
        release()
        reject(error)
      },
    )
  })
}
