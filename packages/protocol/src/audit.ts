/** Who did what, when: changes, connections and refusals. Never contents, never secrets. */
import { z } from 'zod'
import { page, paged, type Route } from './route.ts'

export const auditEntry = z.object({
  atMs: z.number(),
  /** Id of the key; null where none was good. */
  key: z.string().nullable(),
  project: z.string().nullable(),
  /** As docs/api.md names it; `unknown` where there is none of that path. */
  route: z.string(),
  /** What its path names: ids and names. */
  targets: z.record(z.string(), z.string()),
  /** Of the answer. */
  status: z.number(),
  /** Of the error, if it was one. */
  code: z.string().nullable(),
  /** Where it came from, as the daemon sees it. */
  address: z.string().nullable(),
})
export type AuditEntry = z.infer<typeof auditEntry>

const time = z.union([
  z.iso.datetime({ offset: true, error: 'not a time such as 2026-11-30T12:00:00Z' }),
  z.iso.date(),
])

export const AUDIT_ROUTES = {
  getAudit: {
    method: 'GET',
    path: '/v1/audit',
    summary: 'Who did what: changes, connections and refusals, oldest first',
    query: z.object({
      ...page,
      /** Default: a day before now. */
      from: time.optional(),
      /** Default: now. */
      to: time.optional(),
      /** Id of a key. */
      key: z.string().optional(),
    }),
    answer: paged(auditEntry),
    status: 200,
  },
} as const satisfies Record<string, Route>
