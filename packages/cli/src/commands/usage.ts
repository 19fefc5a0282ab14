/** `sandlot usage`. */

import type { UsageKind } from '@sandlot/protocol'
import { formatDuration } from '@sandlot/protocol'
import { Sandlot, type UsageLine, type UsageReport } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { formatMicros } from './money.ts'
import { timeOf } from './when.ts'

export interface UsageCommandOptions {
  readonly since?: string
  readonly until?: string
  readonly by: UsageReport['by']
  readonly json?: boolean
}

export async function usageCommand({ since, until, by, json }: UsageCommandOptions): Promise<void> {
  await using client = new Sandlot()
  const report = await client.usage({
    by,
    ...(since === undefined ? {} : { from: timeOf('--since', since) }),
    ...(until === undefined ? {} : { to: timeOf('--until', until) }),
  })
  if (json) return printJson(report)
  if (report.lines.length === 0) note('nothing was metered')
  printLine(describeUsage(report))
}

export function describeUsage(report: UsageReport): string {
  const { lines, total, by, currency, idle } = report
  const headings = ['SANDBOXES', 'TIME', 'CPU HOURS', 'USED', 'GIB HOURS', 'RETRIES', 'COST']
  const rows = lines.map((line) => [...namesOf(line, by), ...amountsOf(line, currency)])
  const names = by === 'run' ? ['PROJECT', 'RUN'] : by === 'day' ? ['DAY', 'PROJECT'] : ['PROJECT']
  const sum = ['total', ...names.slice(1).map(() => ''), ...amountsOf(total, currency)]
  const parts = [formatTable([...names, ...headings], [...rows, sum])]
  if (idle && idle.sandboxSeconds > 0) {
    const time = formatDuration(idle.sandboxSeconds * 1_000)
    parts.push(
      `beside it the pool: ${time} of sandboxes that waited, ${hours(idle.memoryGibSeconds)} GiB hours`,
    )
  }
  if (currency === null) parts.push('no prices are set (SANDLOT_PRICES)')
  return parts.join('\n\n')
}

function namesOf({ project, day, kind, run }: UsageLine, by: UsageReport['by']): string[] {
  const whose = project === '' ? NOBODYS : project
  if (by === 'project') return [whose]
  if (by === 'day') return [day ?? '', whose]
  return [whose, run ?? (kind === undefined ? '' : WITHOUT_RUN[kind])]
}

/** A step of a build runs once, for all projects that ask for the same. */
const NOBODYS = '-'

const WITHOUT_RUN: Readonly<Record<UsageKind, string>> = {
  episode: '(episodes)',
  sandbox: '(sandboxes of clients)',
  build: '(builds)',
  function: '(functions)',
}

function amountsOf(line: UsageReport['total'], currency: string | null): string[] {
  const { sandboxes, seconds, allocated, used, retries, costMicros } = line
  return [
    String(sandboxes),
    formatDuration(seconds * 1_000),
    hours(allocated.cpuSeconds),
    hours(used.cpuSeconds),
    hours(allocated.memoryGibSeconds),
    retries.seconds === 0
      ? '-'
      : retries.costMicros === null
        ? formatDuration(retries.seconds * 1_000)
        : formatMicros(retries.costMicros, currency),
    costMicros === null ? '-' : formatMicros(costMicros, currency),
  ]
}

function hours(seconds: number): string {
  return (seconds / 3_600).toFixed(3)
}
