import type { TaskLog } from '@sandlot/protocol'
import { FUNCTION_LIMITS } from './limits.ts'

interface Lines {
  lines: TaskLog[]
  chars: number
  next: number
}

/**
 * What functions print, for those who wait for their results: the latest lines of the latest callers, in memory. A line is here before the
 * result of its task is.
 */
export class CallLogs {
  /** The one that was written to last is the last. */
  readonly #calls = new Map<string, Lines>()

  add(stream: string, line: Omit<TaskLog, 'seq'>): void {
    const kept = this.#calls.get(stream) ?? { lines: [], chars: 0, next: 0 }
    this.#calls.delete(stream)
    this.#calls.set(stream, kept)
    kept.lines.push({ ...line, seq: kept.next })
    kept.next += 1
    kept.chars += line.text.length
    while (kept.lines.length > FUNCTION_LIMITS.logLines || kept.chars > FUNCTION_LIMITS.logChars) {
      kept.chars -= kept.lines.shift()?.text.length ?? 0
    }
    const [oldest] = this.#calls.keys()
    if (this.#calls.size > FUNCTION_LIMITS.logCallers && oldest !== undefined) {
      this.#calls.delete(oldest)
    }
  }

  /** From a number on. After a restart of the daemon the numbers begin anew, and a larger one reads from the first. */
  read(stream: string, from: number): { readonly logs: readonly TaskLog[]; readonly next: number } {
    const kept = this.#calls.get(stream)
    if (!kept) return { logs: [], next: 0 }
    const start = from > kept.next ? 0 : from
    return { logs: kept.lines.filter(({ seq }) => seq >= start), next: kept.next }
  }
}
