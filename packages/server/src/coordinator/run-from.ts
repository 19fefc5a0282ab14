import type { LiveRun } from './live-run.ts'

/** The name of one whose episodes, or containers, start from an image or from a snapshot's memory. */
export function runFrom(runs: Iterable<LiveRun>, start: string): string | undefined {
  for (const { record, starts } of runs) {
    const { image, memory, function: plays } = record.specification
    const isFrom = image === start || memory?.checkpoint === start || plays?.image === start
    if (isFrom || starts.has(start)) return record.name
  }
  return undefined
}
