import type { Clock, Engine } from '@sandlot/engine'
import { type AuditEntry, auditEntry, SandlotError } from '@sandlot/protocol'
import type { Call, Handlers } from '../http/call.ts'
import { decodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { AUDIT_PREFIX, type Audit, DAY_MS, streamOf } from './audit.ts'

export interface AuditParts {
  readonly audit: Audit
  readonly log: Engine['log']
  readonly clock: Pick<Clock, 'now'>
}

/** Entries of the caller's project; the machine's own key is told of all, and of those that belong to none. */
export function auditHandlers(parts: AuditParts): Pick<Handlers, 'getAudit'> {
  return {
    getAudit: async (call) => {
      await parts.audit.flush()
      return await pageOf(parts, call)
    },
  }
}

/** Goes through the days from a cursor on; bounded, so a page may be short while there is more. */
async function pageOf({ log, clock }: AuditParts, { caller, query, signal }: Call<'getAudit'>) {
  const { key, limit = 100 } = query
  const toMs = query.to === undefined ? clock.now() : Date.parse(query.to)
  const fromMs = query.from === undefined ? toMs - DAY_MS : Date.parse(query.from)
  const isWanted = (entry: AuditEntry) =>
    (caller.isOperator || entry.project === caller.project) &&
    (key === undefined || entry.key === key) &&
    entry.atMs >= fromMs &&
    entry.atMs <= toMs
  const items: AuditEntry[] = []
  let { day, after } = cursorOf(query.after) ?? { day: streamOf(fromMs), after: undefined }
  for (let seen = 0; seen < SERVER_LIMITS.auditScanned; ) {
    const want = Math.min(1_000, limit)
    const options = after === undefined ? { limit: want, signal } : { after, limit: want, signal }
    const records = await log.read(day, options)
    seen += 1 + records.length
    for (const { position, bytes } of records) {
      const entry = auditEntry.parse(decodeJson(bytes))
      if (isWanted(entry)) items.push(entry)
      after = position
      if (items.length === limit)
        return { items, next: `${day.slice(AUDIT_PREFIX.length)}/${after}` }
    }
    if (records.length > 0) continue
    const next = Date.parse(day.slice(AUDIT_PREFIX.length)) + DAY_MS
    if (next > toMs) return { items, next: null }
    day = streamOf(next)
    after = undefined
  }
  return { items, next: `${day.slice(AUDIT_PREFIX.length)}/${after ?? ''}` }
}

function cursorOf(text: string | undefined) {
  if (text === undefined) return undefined
  const [, date, after] = /^(\d{4}-\d{2}-\d{2})\/([\w.:-]{0,64})$/.exec(text) ?? []
  if (date === undefined || Number.isNaN(Date.parse(date))) {
    throw new SandlotError('invalid_request', 'query.after: no cursor of this list')
  }
  return { day: AUDIT_PREFIX + date, after: after === '' ? undefined : after }
}
