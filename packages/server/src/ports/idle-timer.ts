export interface IdleTimer extends Disposable {
  /** Something has moved. */
  readonly touch: () => void
}

/** Calls once when nothing was touched for so long. */
export function idleTimer(idleMs: number, call: () => void): IdleTimer {
  const timer = setTimeout(call, idleMs)
  timer.unref()
  return { touch: () => void timer.refresh(), [Symbol.dispose]: () => clearTimeout(timer) }
}
