import { createHeap } from '../order/heap.ts'

/** Simulated time: what is planned happens in its order, and nothing takes any time itself. */
export interface Timeline {
  readonly nowMs: number
  /** Runs `happen` after so long; what is planned for the same moment happens in order. */
  after(delayMs: number, happen: () => void): void
  /** Goes on to the next thing; false when nothing is planned. */
  step(): boolean
}

interface Planned {
  readonly atMs: number
  readonly order: number
  readonly happen: () => void
  place: number
}

export function createTimeline(startMs: number): Timeline {
  let nowMs = startMs
  let order = 0
  const planned = createHeap<Planned>({
    before: (a, b) => (a.atMs === b.atMs ? a.order < b.order : a.atMs < b.atMs),
    place: (item) => item.place,
    setPlace: (item, place) => {
      item.place = place
    },
  })
  return {
    get nowMs() {
      return nowMs
    },
    after(delayMs, happen) {
      planned.push({ atMs: nowMs + Math.max(0, delayMs), order: order++, happen, place: -1 })
    },
    step() {
      const next = planned.peek()
      if (!next) return false
      planned.remove(next)
      nowMs = next.atMs
      next.happen()
      return true
    },
  }
}
