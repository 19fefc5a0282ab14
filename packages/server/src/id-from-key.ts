import { createHash } from 'node:crypto'
import { formatId, type IdKind } from '@sandlot/protocol'

/** The id that a request with this idempotency key gives: the same again, also after the daemon's death. */
export function idFromKey(kind: IdKind, project: string, key: string): string {
  return formatId(kind, createHash('sha256').update(`${kind}\n${project}\n${key}`).digest())
}
