import type { Clock } from '@sandlot/engine'

/** Deadlines of many, kept by one timer: a heap by time, and one `Clock.after` for its earliest. */
export interface Deadlines {
  /** Sets or moves the one deadline of `key`; `undefined` takes it away. */
  set(key: DeadlineKey, dueMs: number | undefined): void
  /** Takes the timer away and forgets every deadline. */
  close(): void
}

export interface DeadlineKey {
  /** The deadline has passed, and is forgotten. */
  due(): void
}

interface Entry {
  readonly key: DeadlineKey
  readonly dueMs: number
}

export function openDeadlines(clock: Clock): Deadlines {
  /** Entries whose key has another deadline by now stay until they come up, and are skipped then. */
  const heap: Entry[] = []
  const current = new Map<DeadlineKey, Entry>()
  let armedMs = Number.POSITIVE_INFINITY
  let disarm = () => {}

  function arm() {
    while (heap[0] !== undefined && current.get(heap[0].key) !== heap[0]) pop(heap)
    const nextMs = heap[0]?.dueMs ?? Number.POSITIVE_INFINITY
    if (nextMs === armedMs) return
    disarm()
    armedMs = nextMs
    disarm =
      nextMs === Number.POSITIVE_INFINITY
        ? () => {}
        : clock.after(Math.max(0, nextMs - clock.now()), fire)
  }

  function fire() {
    armedMs = Number.POSITIVE_INFINITY
    disarm = () => {}
    const nowMs = clock.now()
    for (let head = heap[0]; head !== undefined; head = heap[0]) {
      const live = current.get(head.key) === head
      if (live && head.dueMs > nowMs) break
      pop(heap)
      if (!live) continue
      current.delete(head.key)
      head.key.due()
    }
    arm()
  }

  return {
    set(key, dueMs) {
      if (current.get(key)?.dueMs === dueMs) return
      if (dueMs === undefined) current.delete(key)
      else {
        const entry = { key, dueMs }
        current.set(key, entry)
        push(heap, entry)
      }
      // Moved deadlines leave their old entries behind: built anew, the heap never holds more than twice what lives.
      if (heap.length > 64 && heap.length > current.size * 2) {
        heap.length = 0
        for (const entry of current.values()) push(heap, entry)
      }
      arm()
    },
    close() {
      disarm()
      heap.length = 0
      current.clear()
    },
  }
}

function push(heap: Entry[], entry: Entry) {
  let at = heap.length
  heap.push(entry)
  while (at > 0) {
    const parent = (at - 1) >> 1
    if ((heap[parent] as Entry).dueMs <= entry.dueMs) break
    heap[at] = heap[parent] as Entry
    at = parent
  }
  heap[at] = entry
}

function pop(heap: Entry[]) {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    const right = heap[child + 1]
    if (right !== undefined && right.dueMs < (heap[child] as Entry).dueMs) child += 1
    if ((heap[child] as Entry).dueMs >= last.dueMs) break
    heap[at] = heap[child] as Entry
    at = child
  }
  heap[at] = last
}
