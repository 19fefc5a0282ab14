import type { Clock } from '../clock.ts'

/** A clock that moves only when told to. */
export class FakeClock implements Clock {
  #nowMs: number
  readonly #timers = new Set<{ atMs: number; callback: () => void }>()

  constructor(startMs = Date.UTC(2030, 0, 1)) {
    this.#nowMs = startMs
  }

  now(): number {
    return this.#nowMs
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Timers that are set. */
  get pending(): number {
    return this.#timers.size
  }

  /** Calls back what is due on the way, in order of time, also what that sets. */
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.atMs <= untilMs)
      const next = due.sort((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      this.#timers.delete(next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.callback()
    }
    this.#nowMs = untilMs
  }
}
