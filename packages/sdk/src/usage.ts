import type { UsageReport } from '@sandlot/protocol'
import type { ClientContext, Waiting } from './connection/context.ts'
import { refuseUnknown } from './connection/unknown-option.ts'

export interface UsageOptions extends Waiting {
  /** Default: 30 days before `to`. What is asked for is widened to whole hours. */
  readonly from?: Date | string
  /** Default: now. */
  readonly to?: Date | string
  /** What a line is of. Default `day`. */
  readonly by?: UsageReport['by']
}

export async function usage(
  { http }: ClientContext,
  { signal, ...options }: UsageOptions,
): Promise<UsageReport> {
  refuseUnknown(options, ['from', 'to', 'by'])
  const { from, to, by } = options
  const query = { from: timeOf(from), to: timeOf(to), by }
  return await http.json<UsageReport>('getUsage', { query, signal })
}

/** What is no time goes as it is: the daemon says what is wrong with it. */
function timeOf(time: Date | string | undefined): string | undefined {
  if (!(time instanceof Date)) return time
  return Number.isNaN(time.getTime()) ? String(time) : time.toISOString()
}
