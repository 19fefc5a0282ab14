/** What the demand for one kind of waiting sandboxes is judged by. Times in milliseconds. */
export interface DemandSettings {
  /** How many are wanted as long as there is any demand. */
  readonly min: number
  /** So long a demand is remembered; without any for so long nothing is wanted. */
  readonly idleMs: number
  /** Takes within this time are one burst: those that wait must do for all of it. */
  readonly burstMs: number
  /** So long an announcement counts, if the idle time is not shorter. */
  readonly expectMs: number
}

interface Peak {
  readonly atMs: number
  readonly depth: number
}

/**
 * How many sandboxes of one kind should wait, from how many were taken and announced: as many as were needed at once lately, at least
 * `min`, and none after an idle time. It decides and does nothing, and its clock is whoever calls.
 */
export class Demand {
  readonly #settings: DemandSettings
  /** Takes of the present burst that have not been made up for, oldest first. */
  #owed: number[] = []
  /** The deepest that bursts went, oldest first and each deeper than those after it. */
  #peaks: Peak[] = []
  readonly #announced = new Map<string, { left: number; readonly untilMs: number }>()
  #lastMs: number

  constructor(settings: DemandSettings, nowMs: number) {
    this.#settings = settings
    this.#lastMs = nowMs
  }

  get min(): number {
    return this.#settings.min
  }

  /** One was asked for, whether or not it was there. */
  taken(nowMs: number): void {
    const { burstMs } = this.#settings
    this.#owed = this.#owed.filter((atMs) => nowMs - atMs < burstMs)
    this.#owed.push(nowMs)
    const depth = this.#owed.length
    this.#peaks = this.#peaks.filter((peak) => peak.depth > depth)
    this.#peaks.push({ atMs: nowMs, depth })
    this.#redeem()
    this.touch(nowMs)
  }

  /** One more waits: it makes up for one that was taken. */
  filled(): void {
    this.#owed.shift()
  }

  /** `count` more are about to be asked for. Takes the place of what was announced under this name before. */
  expect(name: string, count: number, nowMs: number): void {
    this.#announced.delete(name)
    if (count <= 0) return
    const { expectMs, idleMs } = this.#settings
    this.#announced.set(name, { left: count, untilMs: nowMs + Math.min(expectMs, idleMs) })
    this.touch(nowMs)
  }

  /** There is demand, of whatever kind: the idle time begins anew. */
  touch(nowMs: number): void {
    this.#lastMs = nowMs
  }

  wanted(nowMs: number): number {
    const { idleMs, min } = this.#settings
    this.#peaks = this.#peaks.filter(({ atMs }) => nowMs - atMs < idleMs)
    for (const [name, { untilMs }] of this.#announced) {
      if (untilMs <= nowMs) this.#announced.delete(name)
    }
    const least = nowMs - this.#lastMs < idleMs ? min : 0
    const announced = [...this.#announced.values()].reduce((sum, { left }) => sum + left, 0)
    return Math.max(least, this.#peaks[0]?.depth ?? 0, announced)
  }

  /** Whoever announced it has come. */
  #redeem(): void {
    const [name, first] = this.#announced.entries().next().value ?? []
    if (!first || name === undefined) return
    first.left -= 1
    if (first.left === 0) this.#announced.delete(name)
  }
}
