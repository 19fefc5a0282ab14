/** Waits that end before the work does: the work goes on, and its failure is nobody's. */
import { type Deadline, deadline, onAbort } from '@sandlot/engine'
import type { NodeWait } from './port.ts'

/** Rejects with the signal's reason. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  if (signal.aborted) {
    work.catch(() => {})
    return Promise.reject(signal.reason)
  }
  return new Promise((resolve, reject) => {
    const leave = onAbort(signal, () => reject(signal.reason))
    work.then(resolve, reject).finally(leave)
  })
}

/** Rejects with a `TimeoutError`, as a signal would. */
export function unlessLate<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new DOMException(`no answer within ${timeoutMs} ms`, 'TimeoutError'))
    const timer = setTimeout(late, timeoutMs)
    timer.unref()
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** As the caller said how long it waits. */
export function within<T>(work: Promise<T>, wait: NodeWait | undefined): Promise<T> {
  const heard = unlessAborted(work, wait?.signal)
  return wait?.timeoutMs === undefined ? heard : unlessLate(heard, wait.timeoutMs)
}

/** The same as a signal, to be disposed of with the work. */
export function deadlineOf(wait: NodeWait | undefined): Deadline {
  return deadline(wait?.timeoutMs, wait?.signal)
}
