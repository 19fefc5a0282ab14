import {
  type NetworkLogEntry,
  type NetworkLogPage,
  type NetworkPhase,
  networkLogEntry,
} from '@sandlot/protocol'
import type { RelayNews } from '@sandlot/runtime'
import { z } from 'zod'
import { SERVER_LIMITS } from '../limits.ts'

/** As it is written down. */
export const savedJournal = z.object({ next: z.number(), lines: z.array(networkLogEntry) })
export type SavedJournal = z.infer<typeof savedJournal>

/** An entry without its place and time. */
type Line<T = NetworkLogEntry> = T extends NetworkLogEntry ? Omit<T, 'seq' | 'atMs'> : never

const SECOND_MS = 1_000

/**
 * The log of one sandbox's connections, for whoever owns it: so many lines, and so many in a second. What comes faster is counted, and a
 * line says how many; of what is too old, whoever reads is told how many are missing. A loop inside costs bounded memory.
 */
export class NetworkJournal {
  readonly #now: () => number
  readonly #lines: NetworkLogEntry[] = []
  readonly #waiting = new Set<() => void>()
  #next = 1
  #over = false
  #dropped = 0
  #free: number = SERVER_LIMITS.journalBurst
  #filledAtMs: number

  constructor(now: () => number, saved?: SavedJournal) {
    this.#now = now
    this.#filledAtMs = now()
    if (!saved) return
    this.#next = saved.next
    this.#lines.push(...saved.lines)
  }

  /** Grows with each line: whether there is something to write down. */
  get next(): number {
    return this.#next
  }

  /** A connection, or why there is none; of one that is opened its end follows by itself. */
  note({ target, protocol, outcome, detail = '', opened }: RelayNews, phase: NetworkPhase): void {
    const of = { target: target.slice(0, SERVER_LIMITS.journalTargetLength), protocol, phase }
    if (outcome !== 'allowed') {
      const said = detail.slice(0, SERVER_LIMITS.journalDetailLength)
      this.#add({ kind: 'refused', ...of, reason: outcome, detail: said })
      return
    }
    if (!opened) return
    const { rule, address, closed } = opened
    const seq = this.#add({ kind: 'opened', ...of, rule, address })
    if (seq === undefined) return
    void closed.then((end) => this.#add({ kind: 'closed', ...of, opened: seq, ...end }))
  }

  /** Another policy is in force. */
  policyChanged(phase: NetworkPhase): void {
    this.#add({ kind: 'policy', phase })
  }

  /** From `from` on, at once. */
  read(from: number, limit: number): NetworkLogPage {
    this.#tellDropped()
    const first = this.#lines[0]?.seq ?? this.#next
    const missing = first - Math.max(1, from)
    const gap: NetworkLogEntry[] =
      missing > 0
        ? [{ kind: 'dropped', seq: first - 1, atMs: this.#lines[0]?.atMs ?? 0, count: missing }]
        : []
    const found = this.#lines.filter(({ seq }) => seq >= from).slice(0, limit - gap.length)
    const items = [...gap, ...found]
    const next = (items.at(-1)?.seq ?? Math.max(from, this.#next) - 1) + 1
    return { items, next, over: this.#over && next >= this.#next }
  }

  /** The same, once there is something, or nothing can come any more, or `signal` aborts. */
  async wait(from: number, limit: number, signal: AbortSignal): Promise<NetworkLogPage> {
    for (;;) {
      const page = this.read(from, limit)
      if (page.items.length > 0 || page.over || signal.aborted) return page
      await new Promise<void>((resolve) => {
        const wake = () => {
          signal.removeEventListener('abort', wake)
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
        signal.addEventListener('abort', wake, { once: true })
      })
    }
  }

  /** The latest, to be written down. */
  saved(): SavedJournal {
    this.#tellDropped()
    return { next: this.#next, lines: this.#lines.slice(-SERVER_LIMITS.journalSavedLines) }
  }

  /** The sandbox has ended. */
  end(): void {
    this.#tellDropped()
    this.#over = true
    this.#wake()
  }

  /** Its place, or undefined where it is counted alone. */
  #add(line: Line): number | undefined {
    const { journalBurst, journalLinesASecond } = SERVER_LIMITS
    const nowMs = this.#now()
    const filled = (Math.max(0, nowMs - this.#filledAtMs) / SECOND_MS) * journalLinesASecond
    this.#free = Math.min(journalBurst, this.#free + filled)
    this.#filledAtMs = nowMs
    if (this.#free < 1) {
      this.#dropped += 1
      return undefined
    }
    this.#free -= 1
    this.#tellDropped()
    return this.#push(line)
  }

  #tellDropped(): void {
    const count = this.#dropped
    if (count === 0) return
    this.#dropped = 0
    this.#push({ kind: 'dropped', count })
  }

  #push(line: Line): number {
    const seq = this.#next
    this.#next += 1
    this.#lines.push({ ...line, seq, atMs: this.#now() } as NetworkLogEntry)
    if (this.#lines.length > SERVER_LIMITS.journalLines) this.#lines.shift()
    this.#wake()
    return seq
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}
