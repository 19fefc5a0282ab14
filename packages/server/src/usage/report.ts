/** From the ledger's lines, and what goes on, to what a person is told. */
import type { Metered, UsageBy, UsageLine, UsageReport } from '@sandlot/protocol'
import type { BookLine } from './day-book.ts'
import { addSum, type MeteredSum, noSum } from './metered.ts'

interface Both {
  readonly all: MeteredSum
  readonly retries: MeteredSum
}

/** Lines of what is somebody's, in order. */
export function linesOf(lines: readonly BookLine[], by: UsageBy): UsageLine[] {
  const found = new Map<string, { readonly of: Named; readonly both: Both }>()
  for (const line of lines) {
    if (line.kind === 'idle') continue
    const of = namedBy(line, by)
    const key = JSON.stringify(of)
    const entry = found.get(key) ?? { of, both: nothing() }
    add(entry.both, line)
    found.set(key, entry)
  }
  return [...found.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { of, both }]) => ({ ...of, ...toldOf(both) }))
}

export function totalOf(lines: readonly BookLine[]): UsageReport['total'] {
  const both = nothing()
  for (const line of lines) if (line.kind !== 'idle') add(both, line)
  return toldOf(both)
}

export function idleOf(lines: readonly BookLine[]): NonNullable<UsageReport['idle']> {
  const sum = noSum()
  for (const line of lines) if (line.kind === 'idle') addSum(sum, line.sum)
  return { sandboxSeconds: seconds(sum.ms), memoryGibSeconds: gibSeconds(sum.memoryMibMs) }
}

type Named = Pick<UsageLine, 'project' | 'day' | 'kind' | 'run'>

function namedBy({ project, hourMs, kind, run }: BookLine, by: UsageBy): Named {
  if (by === 'day') return { project, day: new Date(hourMs).toISOString().slice(0, 10) }
  if (by === 'project' || kind === 'idle') return { project }
  return { project, kind, ...(run === null ? {} : { run }) }
}

function nothing(): Both {
  return { all: noSum(), retries: noSum() }
}

function add({ all, retries }: Both, { sum, retry }: BookLine): void {
  addSum(all, sum)
  if (retry) addSum(retries, sum)
}

function toldOf({ all, retries }: Both): Metered & { readonly retries: Metered } {
  const none = all.micros === null ? null : 0
  return {
    ...meteredOf(all),
    retries: { ...meteredOf(retries), costMicros: retries.micros ?? none },
  }
}

function meteredOf(sum: MeteredSum): Metered {
  return {
    sandboxes: sum.sandboxes,
    seconds: seconds(sum.ms),
    allocated: {
      cpuSeconds: seconds(sum.cpuMs),
      memoryGibSeconds: gibSeconds(sum.memoryMibMs),
      diskGibSeconds: gibSeconds(sum.diskMibMs),
      gpuSeconds: seconds(sum.gpuMs),
    },
    used: { cpuSeconds: seconds(sum.usedCpuMs), networkBytes: sum.networkBytes },
    costMicros: sum.micros,
  }
}

function seconds(ms: number): number {
  return Math.round(ms) / 1_000
}

function gibSeconds(mibMs: number): number {
  return Math.round(mibMs / 1_024) / 1_000
}
