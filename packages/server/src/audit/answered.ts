import { ROUTES, type RouteName } from '@sandlot/protocol'
import type { UpgradeAsked } from '../connect/upgrade.ts'
import type { Answered } from '../http/request-log.ts'
import type { Audit } from './audit.ts'

/** Takes what changes something, and who was refused. Looking is not recorded, and who asks too often only in the daemon's log. */
export function auditAnswered(audit: Audit, answered: Answered): void {
  const { route, caller, targets, status, error, address } = answered
  const isRefusal = REFUSALS.has(error?.code ?? '')
  // What is asked of a server in a sandbox changes nothing of the daemon's.
  const isOurs = route !== 'unknown' && route !== 'port'
  if (!isRefusal && !(isOurs && isChange(route))) return
  if (error?.code === 'rate_limited') return
  audit.add({
    ...{ key: caller?.key ?? null, project: caller?.project ?? null },
    ...{ route, targets, status, code: error?.code ?? null, address },
  })
}

/** Who connected: what is done over the connection is not recorded one by one. */
export function auditConnection(audit: Audit, { caller, error, address }: UpgradeAsked): void {
  if (error && !REFUSALS.has(error.code)) return
  audit.add({
    ...{ key: caller?.key ?? null, project: caller?.project ?? null },
    ...{ route: 'connect', targets: {}, address },
    ...{ status: error?.status ?? ROUTES.connect.status, code: error?.code ?? null },
  })
}

const REFUSALS: ReadonlySet<string> = new Set([
  'unauthorized',
  'forbidden',
  'token_invalid',
  'token_expired',
])

function isChange(route: RouteName): boolean {
  const { method } = ROUTES[route]
  return method !== 'GET' && method !== 'HEAD'
}
