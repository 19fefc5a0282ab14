/**
 * Calls back when the signal aborts; returns what forgets the callback. The signal must not have aborted yet.
 *
 * An AbortSignal compares each new listener with all it has, so thousands of calls that share one signal would cost their
 * square. Here each signal has one listener, whoever waits on it.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {}
  const group = groups.get(signal) ?? createGroup(signal)
  // An entry of its own, so that the same callback may be there twice.
  const entry = { callback }
  group.entries.add(entry)
  return () => {
    if (group.entries.delete(entry) && group.entries.size === 0) group.end()
  }
}

interface Group {
  readonly entries: Set<{ callback: () => void }>
  /** Leaves the signal as it was. */
  readonly end: () => void
}

const groups = new WeakMap<AbortSignal, Group>()

function createGroup(signal: AbortSignal): Group {
  const entries = new Set<{ callback: () => void }>()
  const abort = () => {
    groups.delete(signal)
    for (const { callback } of entries) callback()
  }
  const end = () => {
    groups.delete(signal)
    signal.removeEventListener('abort', abort)
  }
  const group = { entries, end }
  groups.set(signal, group)
  signal.addEventListener('abort', abort, { once: true })
  return group
}
