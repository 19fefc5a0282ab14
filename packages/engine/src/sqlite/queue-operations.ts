import type { DatabaseSync } from 'node:sqlite'
import { EngineError } from '../error.ts'
import { PAGE_BYTES_MAX, QUEUE_DEDUP_MS, SWEEP_ROWS_MAX } from '../limits.ts'
import type { LeasedRow, LeaseWant, OperationHandlers } from './operation.ts'
import { formatPosition, parsePosition } from './position.ts'

type QueueKind = Extract<keyof OperationHandlers, `queue.${string}`>

/** Expired keys that one put removes: more than it adds, so that they cannot pile up. */
const KEYS_SWEPT = 2

const DELETE_SOME =
  'DELETE FROM queue_messages WHERE id IN (SELECT id FROM queue_messages WHERE queue = ? AND'

interface MessageRow {
  readonly id: number
  readonly priority: number
  readonly deliveries: number
  readonly body: Uint8Array
}

export function queueOperations(database: DatabaseSync): OperationHandlers<QueueKind> {
  const statements = prepare(database)
  return {
    'queue.put': putInto(statements),
    'queue.lease': leaseFrom(statements),
    ...holding(statements),
    'queue.delete': ({ queue }) => {
      const id = findQueue(statements, queue)?.id
      if (id === undefined) return false
      const { deleteReady, deleteWaiting, deleteKeys } = statements
      for (const some of [deleteReady, deleteWaiting, deleteKeys]) {
        if (Number(some.run(id, SWEEP_ROWS_MAX).changes) > 0) return true
      }
      statements.deleteName.run(id)
      return false
    },
    'queue.depth': ({ queue, nowMs }) => {
      const id = findQueue(statements, queue)?.id
      const count = (sql: typeof statements.countReady, ...values: number[]) =>
        id === undefined ? 0 : (sql.get(id, ...values) as { n: number }).n
      return {
        ready: count(statements.countReady) + count(statements.countDue, nowMs),
        delayed: count(statements.countWaiting, nowMs, 1),
        leased: count(statements.countWaiting, nowMs, 2),
      }
    },
    'queue.list': ({ prefix, after, limit }, _in, out) => {
      const messages: { queue: string; id: string }[] = []
      const from = after === undefined ? 0 : parsePosition('after', after)
      let pageBytes = 0
      for (const row of statements.list.iterate(from, prefix, `${prefix}\x7f`, limit + 1)) {
        if (messages.length === limit || pageBytes >= PAGE_BYTES_MAX)
          return { messages, more: true }
        const { id, name, body } = row as unknown as ListedRow
        messages.push({ queue: name, id: formatPosition(id) })
        out.push(body)
        pageBytes += body.byteLength
      }
      return { messages, more: false }
    },
  }
}

interface ListedRow {
  readonly id: number
  readonly name: string
  readonly body: Uint8Array
}

type Statements = ReturnType<typeof prepare>

function prepare(database: DatabaseSync) {
  const p = (sql: string) => database.prepare(sql)
  const held = 'FROM queue_messages WHERE id = ? AND queue = ? AND token = ?'
  return {
    queue: p('SELECT id, token FROM queue_names WHERE name = ?'),
    createQueue: p('INSERT INTO queue_names (name) VALUES (?)'),
    moveToken: p('UPDATE queue_names SET token = ? WHERE id = ?'),
    insert: p(
      'INSERT INTO queue_messages (queue, state, priority, due_at, dedup, body) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    key: p('SELECT id, present, expires_at FROM queue_keys WHERE queue = ? AND dedup = ?'),
    putKey: p('INSERT OR REPLACE INTO queue_keys VALUES (?, ?, ?, 1, ?)'),
    releaseKey: p('UPDATE queue_keys SET present = 0 WHERE queue = ? AND dedup = ?'),
    sweepKeys: p(
      `DELETE FROM queue_keys WHERE (queue, dedup) IN (
         SELECT queue, dedup FROM queue_keys WHERE present = 0 AND expires_at <= ?
         ORDER BY expires_at LIMIT ?)`,
    ),
    promote: p(
      'UPDATE queue_messages SET state = 0 WHERE queue = ? AND state <> 0 AND due_at <= ?',
    ),
    ready: p(
      `SELECT id, priority, deliveries, body FROM queue_messages
       WHERE queue = ? AND state = 0 ORDER BY priority DESC, id LIMIT ?`,
    ),
    lease: p(
      'UPDATE queue_messages SET state = 2, due_at = ?, token = ?, deliveries = deliveries + 1 WHERE id = ?',
    ),
    nextDue: p('SELECT min(due_at) AS at FROM queue_messages WHERE queue = ? AND state <> 0'),
    held: p(`SELECT dedup ${held}`),
    extend: p('UPDATE queue_messages SET state = 2, due_at = ? WHERE id = ?'),
    delete: p('DELETE FROM queue_messages WHERE id = ?'),
    giveBack: p(
      `UPDATE queue_messages SET state = ?, due_at = ?, token = 0, deliveries = deliveries - ?
       WHERE id = ?`,
    ),
    // One for each index.
    deleteReady: p(`${DELETE_SOME} state = 0 LIMIT ?)`),
    deleteWaiting: p(`${DELETE_SOME} state <> 0 LIMIT ?)`),
    deleteKeys: p(
      `DELETE FROM queue_keys WHERE queue = ?1 AND dedup IN (
         SELECT dedup FROM queue_keys WHERE queue = ?1 LIMIT ?2)`,
    ),
    deleteName: p('DELETE FROM queue_names WHERE id = ?'),
    // In the order of ids, which no index of one queue has for messages in all states.
    list: p(
      `SELECT m.id, n.name, m.body FROM queue_messages AS m CROSS JOIN queue_names AS n
       WHERE m.id > ? AND n.id = m.queue AND n.name >= ? AND n.name < ? ORDER BY m.id LIMIT ?`,
    ),
    countReady: p('SELECT count(*) AS n FROM queue_messages WHERE queue = ? AND state = 0'),
    countDue: p(
      'SELECT count(*) AS n FROM queue_messages WHERE queue = ? AND state <> 0 AND due_at <= ?',
    ),
    countWaiting: p(
      `SELECT count(*) AS n FROM queue_messages
       WHERE queue = ? AND state <> 0 AND due_at > ? AND state = ?`,
    ),
  }
}

function findQueue(
  statements: Statements,
  name: string,
): { id: number; token: number } | undefined {
  return statements.queue.get(name) as { id: number; token: number } | undefined
}

function putInto(statements: Statements): OperationHandlers['queue.put'] {
  return ({ queue, priority, delayMs, dedup, nowMs }, [body]) => {
    const id =
      findQueue(statements, queue)?.id ?? Number(statements.createQueue.run(queue).lastInsertRowid)
    if (dedup !== undefined) {
      const key = statements.key.get(id, dedup) as
        | { id: number; present: number; expires_at: number }
        | undefined
      if (key && (key.present === 1 || key.expires_at > nowMs)) {
        return { id: formatPosition(key.id), duplicate: true, dueAtMs: nowMs }
      }
    }
    const dueAtMs = nowMs + delayMs
    const bytes = body ?? new Uint8Array(0)
    const inserted = statements.insert.run(
      id,
      delayMs > 0 ? 1 : 0,
      priority,
      dueAtMs,
      dedup ?? null,
      bytes,
    )
    const message = Number(inserted.lastInsertRowid)
    if (dedup !== undefined) {
      statements.putKey.run(id, dedup, message, nowMs + QUEUE_DEDUP_MS)
      statements.sweepKeys.run(nowMs, KEYS_SWEPT)
    }
    return { id: formatPosition(message), duplicate: false, dueAtMs }
  }
}

function leaseFrom(statements: Statements): OperationHandlers['queue.lease'] {
  return ({ queue, wants, nowMs }, _in, out) => {
    const row = findQueue(statements, queue)
    if (row === undefined) return { leases: wants.map(() => []), nextDueAtMs: null }
    statements.promote.run(row.id, nowMs)
    const counter = { token: row.token, bytes: 0 }
    const leases = wants.map((want) => serve(statements, row.id, want, nowMs, counter, out))
    if (counter.token !== row.token) statements.moveToken.run(counter.token, row.id)
    if (leases.every((rows) => rows.length > 0)) return { leases, nextDueAtMs: null }
    return {
      leases,
      nextDueAtMs: (statements.nextDue.get(row.id) as { at: number | null }).at,
    }
  }
}

/** Every want gets one message at least while there are any; the bytes of all wants together are bounded beyond that. */
function serve(
  statements: Statements,
  queue: number,
  want: LeaseWant,
  nowMs: number,
  counter: { token: number; bytes: number },
  out: Uint8Array[],
): LeasedRow[] {
  const taken: MessageRow[] = []
  for (const row of statements.ready.iterate(queue, want.max)) {
    const message = row as unknown as MessageRow
    taken.push(message)
    counter.bytes += message.body.byteLength
    if (counter.bytes >= PAGE_BYTES_MAX) break
  }
  return taken.map(({ id, priority, deliveries, body }) => {
    counter.token += 1
    const expiresAtMs = nowMs + want.leaseMs
    statements.lease.run(expiresAtMs, counter.token, id)
    out.push(body)
    return {
      id: formatPosition(id),
      token: counter.token,
      priority,
      deliveries: deliveries + 1,
      expiresAtMs,
    }
  })
}

function holding(
  statements: Statements,
): OperationHandlers<'queue.extend' | 'queue.ack' | 'queue.nack'> {
  return {
    'queue.extend': ({ leaseMs, nowMs, ...ref }) => {
      const { id } = findHeld(statements, ref)
      statements.extend.run(nowMs + leaseMs, id)
      return nowMs + leaseMs
    },
    'queue.ack': (ref) => {
      const { id, queue, dedup } = findHeld(statements, ref)
      statements.delete.run(id)
      if (dedup !== null) statements.releaseKey.run(queue, dedup)
      return undefined
    },
    'queue.nack': ({ delayMs, nowMs, untaken = false, ...ref }) => {
      const { id } = findHeld(statements, ref)
      statements.giveBack.run(delayMs > 0 ? 1 : 0, nowMs + delayMs, untaken ? 1 : 0, id)
      return nowMs + delayMs
    },
  }
}

/** The message that this lease still holds. Token 0 is nobody's. */
function findHeld(
  statements: Statements,
  ref: { queue: string; id: string; token: number },
): { id: number; queue: number; dedup: string | null } {
  const queue = findQueue(statements, ref.queue)?.id
  const id = parsePosition('id', ref.id)
  const row =
    queue === undefined || ref.token <= 0 ? undefined : statements.held.get(id, queue, ref.token)
  if (row === undefined || queue === undefined) {
    throw new EngineError(
      'lease_lost',
      `lease ${ref.token} of message ${ref.id} in ${ref.queue} is over`,
    )
  }
  return { id, queue, dedup: (row as { dedup: string | null }).dedup }
}
