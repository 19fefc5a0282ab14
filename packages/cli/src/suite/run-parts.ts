import { Failure } from '../failure.ts'
import { addCounts, type Counts, formatCounts, ONE_FAILED } from './counts.ts'
import type { Part } from './parts.ts'

export interface RunPartsOptions {
  readonly signal: AbortSignal
  readonly print: (line: string) => void
  readonly now?: () => number
}

/** Runs parts one after another, each with its time; the last line is the sum. A part that throws, or is interrupted, has failed. */
export async function runParts(parts: readonly Part[], options: RunPartsOptions): Promise<Counts> {
  const { signal, print, now = () => performance.now() } = options
  const all: Counts[] = []
  for (const { name, run } of parts) {
    if (signal.aborted) break
    const startedMs = now()
    const counts = await run(signal).catch((error: Error) => {
      print(error instanceof Failure ? `${error.message}\nhint: ${error.hint}` : `${error.stack}`)
      return ONE_FAILED
    })
    all.push(counts)
    const word = counts.failed === 0 ? 'ok' : 'FAILED'
    print(`${word}: ${name} (${formatCounts(counts)}, ${seconds(now() - startedMs)})`)
  }
  const total = addCounts(all)
  print(formatCounts(total))
  return total
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
