import type { DatabaseSync } from 'node:sqlite'
import { EngineError } from '../error.ts'
import { PAGE_BYTES_MAX, SWEEP_ROWS_MAX } from '../limits.ts'
import type { KvRow, OperationHandlers } from './operation.ts'
import { formatPosition } from './position.ts'

type KvKind = Extract<keyof OperationHandlers, `kv.${string}`>

interface EntryRow {
  readonly key: string
  readonly revision: number
  readonly expires_at: number | null
  readonly value: Uint8Array
}

export function kvOperations(database: DatabaseSync): OperationHandlers<KvKind> {
  const statements = prepare(database)
  const present = (key: string, nowMs: number) =>
    (statements.revision.get(key, nowMs) as { revision: number } | undefined)?.revision
  const nextRevision = () => (statements.next.get() as { last: number }).last
  return {
    'kv.get': ({ key, nowMs }, _in, out) => {
      const row = statements.get.get(key, nowMs) as unknown as EntryRow | undefined
      if (row === undefined) return undefined
      out.push(row.value)
      return asKvRow(row)
    },
    'kv.put': ({ key, expect, expiresAtMs, nowMs }, [value]) => {
      if (expect !== undefined) checkRevision(key, expect, present(key, nowMs))
      const revision = nextRevision()
      statements.put.run(key, revision, expiresAtMs, value ?? new Uint8Array(0))
      return formatPosition(revision)
    },
    'kv.delete': ({ key, expect, nowMs }) => {
      const standing = present(key, nowMs)
      if (expect !== undefined) checkRevision(key, expect, standing)
      if (standing === undefined) return undefined
      statements.delete.run(key)
      return formatPosition(nextRevision())
    },
    'kv.list': listFrom(statements),
    'kv.expire': ({ nowMs }) => {
      const rows = statements.expire.all(nowMs, SWEEP_ROWS_MAX) as { key: string }[]
      const expired = rows.map(({ key }) => ({ key, revision: formatPosition(nextRevision()) }))
      const next = statements.nextExpiry.get() as { at: number | null }
      return { expired, nextAtMs: next.at }
    },
  }
}

type Statements = ReturnType<typeof prepare>

function prepare(database: DatabaseSync) {
  const p = (sql: string) => database.prepare(sql)
  const alive = (now: string) => `(expires_at IS NULL OR expires_at > ${now})`
  return {
    get: p(`SELECT * FROM kv_entries WHERE key = ? AND ${alive('?')}`),
    revision: p(`SELECT revision FROM kv_entries WHERE key = ? AND ${alive('?')}`),
    next: p('UPDATE kv_revision SET last = last + 1 RETURNING last'),
    put: p(
      `INSERT INTO kv_entries (key, revision, expires_at, value) VALUES (?1, ?2, ?3, ?4)
       ON CONFLICT DO UPDATE SET revision = ?2, expires_at = ?3, value = ?4`,
    ),
    delete: p('DELETE FROM kv_entries WHERE key = ?'),
    list: p(
      `SELECT * FROM kv_entries WHERE key >= ?1 AND key < ?2 AND key > ?3 AND ${alive('?5')}
       ORDER BY key LIMIT ?4`,
    ),
    expire: p(
      `DELETE FROM kv_entries WHERE key IN (
         SELECT key FROM kv_entries WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
       RETURNING key`,
    ),
    nextExpiry: p('SELECT min(expires_at) AS at FROM kv_entries WHERE expires_at IS NOT NULL'),
  }
}

function listFrom(statements: Statements): OperationHandlers['kv.list'] {
  return ({ prefix, after, limit, nowMs }, _in, out) => {
    const rows: KvRow[] = []
    let pageBytes = 0
    const found = statements.list.iterate(prefix, `${prefix}\x7f`, after ?? '', limit + 1, nowMs)
    for (const item of found) {
      if (rows.length === limit || pageBytes >= PAGE_BYTES_MAX) return { rows, more: true }
      const row = item as unknown as EntryRow
      rows.push(asKvRow(row))
      out.push(row.value)
      pageBytes += row.value.byteLength
    }
    return { rows, more: false }
  }
}

function asKvRow({ key, revision, expires_at }: EntryRow): KvRow {
  return { key, revision: formatPosition(revision), expiresAtMs: expires_at }
}

/** `expect` null: absent. */
function checkRevision(key: string, expect: number | null, found: number | undefined): void {
  if (expect === (found ?? null)) return
  const text = (revision: number | null) =>
    revision === null ? 'absent' : `at revision ${formatPosition(revision)}`
  throw new EngineError(
    'kv_conflict',
    `${key} is ${text(found ?? null)}, expected ${text(expect)}`,
    { details: { revision: found === undefined ? null : formatPosition(found) } },
  )
}
