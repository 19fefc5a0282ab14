import type { AuditEntry } from '@sandlot/protocol'
import type { ClientContext, Waiting } from './connection/context.ts'
import { pagesOf } from './connection/pages.ts'
import { refuseUnknown } from './connection/unknown-option.ts'

export interface AuditOptions extends Waiting {
  /** Default: a day before `to`. */
  readonly from?: Date | string
  /** Default: now. */
  readonly to?: Date | string
  /** Only what this key did, by its id. */
  readonly key?: string
}

const PAGE_ITEMS = 1_000

export function audit(context: ClientContext, options: AuditOptions): AsyncGenerator<AuditEntry> {
  refuseUnknown(options, ['from', 'to', 'key', 'signal'])
  const { signal, from, to, key } = options
  const query = { from: timeOf(from), to: timeOf(to), key, limit: PAGE_ITEMS }
  return pagesOf(context, 'getAudit', signal ? { signal } : {}, query)
}

/** What is no time goes as it is: the daemon says what is wrong with it. */
function timeOf(time: Date | string | undefined): string | undefined {
  if (!(time instanceof Date)) return time
  return Number.isNaN(time.getTime()) ? String(time) : time.toISOString()
}
