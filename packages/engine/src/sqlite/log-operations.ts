import type { DatabaseSync } from 'node:sqlite'
import { invalid } from '../argument.ts'
import { EngineError } from '../error.ts'
import { PAGE_BYTES_MAX, SWEEP_ROWS_MAX } from '../limits.ts'
import type { Duplicate } from '../log.ts'
import type { OperationHandlers } from './operation.ts'
import { formatPosition } from './position.ts'

type LogKind = Extract<keyof OperationHandlers, `log.${string}`>

interface StreamRow {
  readonly id: number
  readonly head: number
  readonly trimmed: number
}

/** Ids of a stream's records lie from `stream << 36` up; the first position is 1. */
export function logOperations(database: DatabaseSync): OperationHandlers<LogKind> {
  const statements = prepare(database)
  const find = (stream: string) => statements.stream.get(stream) as StreamRow | undefined
  return {
    'log.append': appendTo(statements, find),
    'log.read': readFrom(statements, find),
    'log.find': findIn(statements, find),
    'log.head': ({ stream }) => {
      const row = find(stream)
      return row && formatPosition(row.head)
    },
    ...checkpoints(statements, find),
    ...removal(statements, find),
    'log.list': ({ prefix, after, limit }) => {
      const rows = statements.list.all(prefix, `${prefix}\x7f`, after ?? '', limit)
      return (rows as { name: string; head: number }[]).map(({ name, head }) => ({
        name,
        head: formatPosition(head),
      }))
    },
  }
}

type Statements = ReturnType<typeof prepare>
type Find = (stream: string) => StreamRow | undefined

function prepare(database: DatabaseSync) {
  const p = (sql: string) => database.prepare(sql)
  const range = 'id > (?1 << 36) | ?2 AND id < (?1 + 1) << 36'
  return {
    stream: p('SELECT id, head, trimmed FROM log_streams WHERE name = ?'),
    create: p('INSERT INTO log_streams (name, head, trimmed) VALUES (?, 0, 0)'),
    moveHead: p('UPDATE log_streams SET head = ? WHERE id = ?'),
    insert: p('INSERT INTO log_records (id, dedup, bytes) VALUES ((?1 << 36) | ?2, ?3, ?4)'),
    key: p('SELECT position FROM log_keys WHERE stream = ? AND dedup = ?'),
    insertKey: p('INSERT INTO log_keys (stream, dedup, position) VALUES (?, ?, ?)'),
    read: p(
      `SELECT id & 0xfffffffff AS position, bytes FROM log_records WHERE ${range} ORDER BY id LIMIT ?3`,
    ),
    record: p('SELECT bytes FROM log_records WHERE id = (?1 << 36) | ?2'),
    checkpoint: p('SELECT position, state FROM log_checkpoints WHERE stream = ?'),
    checkpointPosition: p('SELECT position FROM log_checkpoints WHERE stream = ?'),
    putCheckpoint: p(
      'INSERT INTO log_checkpoints VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET position = ?2, state = ?3',
    ),
    moveTrimmed: p('UPDATE log_streams SET trimmed = ? WHERE id = ?'),
    trimKeys: p(
      `DELETE FROM log_keys WHERE stream = ?1 AND dedup IN (
         SELECT dedup FROM log_records
         WHERE id > (?1 << 36) | ?2 AND id <= (?1 << 36) | ?3 AND dedup IS NOT NULL)`,
    ),
    trimRecords: p('DELETE FROM log_records WHERE id > (?1 << 36) | ?2 AND id <= (?1 << 36) | ?3'),
    list: p(
      'SELECT name, head FROM log_streams WHERE name >= ?1 AND name < ?2 AND name > ?3 ORDER BY name LIMIT ?4',
    ),
    deleteStream: p('DELETE FROM log_streams WHERE id = ?'),
    deleteCheckpoint: p('DELETE FROM log_checkpoints WHERE stream = ?'),
    addGarbage: p('INSERT INTO log_garbage VALUES (?)'),
    garbage: p('SELECT stream FROM log_garbage LIMIT 1'),
    sweepRecords: p(
      `DELETE FROM log_records WHERE id IN (
         SELECT id FROM log_records WHERE id > ?1 << 36 AND id < (?1 + 1) << 36 LIMIT ?2)`,
    ),
    sweepKeys: p(
      `DELETE FROM log_keys WHERE stream = ?1 AND dedup IN (
         SELECT dedup FROM log_keys WHERE stream = ?1 LIMIT ?2)`,
    ),
    removeGarbage: p('DELETE FROM log_garbage WHERE stream = ?'),
  }
}

function appendTo(statements: Statements, find: Find): OperationHandlers['log.append'] {
  return ({ stream, expect, dedup }, records) => {
    const row = find(stream)
    const head = row?.head ?? 0
    if (expect !== undefined && expect !== head) throw conflict(stream, expect, head)
    const id = row?.id ?? Number(statements.create.run(stream).lastInsertRowid)
    const duplicates: Duplicate[] = []
    let position = head
    for (const [index, bytes] of records.entries()) {
      const key = dedup?.[index] ?? null
      if (key !== null) {
        const standing = statements.key.get(id, key) as { position: number } | undefined
        if (standing) {
          duplicates.push({ index, position: formatPosition(standing.position) })
          continue
        }
      }
      position += 1
      statements.insert.run(id, position, key, bytes)
      if (key !== null) statements.insertKey.run(id, key, position)
    }
    if (position !== head) statements.moveHead.run(position, id)
    return { position: formatPosition(position), duplicates }
  }
}

function readFrom(statements: Statements, find: Find): OperationHandlers['log.read'] {
  return ({ stream, after, limit }, _in, out) => {
    const row = find(stream)
    if (row === undefined) {
      if (after === undefined) return []
      throw new EngineError('not_found', `there is no stream ${stream} for this cursor`)
    }
    if (after !== undefined && after < row.trimmed) {
      throw new EngineError(
        'log_trimmed',
        `records of ${stream} after ${formatPosition(after)} were trimmed`,
        { details: { trimmed: formatPosition(row.trimmed) } },
      )
    }
    if (after !== undefined && after > row.head) {
      throw invalid('after', `is beyond the head of ${stream}: it is of another stream or was lost`)
    }
    const positions: string[] = []
    let pageBytes = 0
    for (const record of statements.read.iterate(row.id, after ?? row.trimmed, limit)) {
      const { position, bytes } = record as unknown as { position: number; bytes: Uint8Array }
      positions.push(formatPosition(position))
      out.push(bytes)
      pageBytes += bytes.byteLength
      if (pageBytes >= PAGE_BYTES_MAX) break
    }
    return positions
  }
}

function findIn(statements: Statements, find: Find): OperationHandlers['log.find'] {
  return ({ stream, keys }, _in, out) => {
    const row = find(stream)
    const positions: (string | null)[] = []
    let pageBytes = 0
    for (const key of keys) {
      const standing = row && (statements.key.get(row.id, key) as { position: number } | undefined)
      positions.push(standing ? formatPosition(standing.position) : null)
      if (row === undefined || standing === undefined) continue
      const { bytes } = statements.record.get(row.id, standing.position) as { bytes: Uint8Array }
      out.push(bytes)
      pageBytes += bytes.byteLength
      if (pageBytes >= PAGE_BYTES_MAX) break
    }
    return positions
  }
}

function checkpoints(
  statements: Statements,
  find: Find,
): OperationHandlers<'log.checkpoint' | 'log.latestCheckpoint'> {
  return {
    'log.checkpoint': ({ stream, position }, [state]) => {
      const row = find(stream)
      if (row === undefined || position > row.head) throw beyondHead('position', stream)
      const present = statements.checkpointPosition.get(row.id) as { position: number } | undefined
      if (present && present.position > position) {
        throw new EngineError(
          'log_conflict',
          `the checkpoint of ${stream} is already of ${formatPosition(present.position)}`,
          { details: { head: formatPosition(row.head) } },
        )
      }
      statements.putCheckpoint.run(row.id, position, state ?? new Uint8Array(0))
      return undefined
    },
    'log.latestCheckpoint': ({ stream }, _in, out) => {
      const row = find(stream)
      const found = row && statements.checkpoint.get(row.id)
      if (found === undefined) return undefined
      const { position, state } = found as unknown as { position: number; state: Uint8Array }
      out.push(state)
      return formatPosition(position)
    },
  }
}

function removal(
  statements: Statements,
  find: Find,
): OperationHandlers<'log.trim' | 'log.delete' | 'log.sweep'> {
  return {
    'log.trim': ({ stream, upTo }) => {
      const row = find(stream)
      if (row === undefined || upTo > row.head) throw beyondHead('upTo', stream)
      if (upTo <= row.trimmed) return false
      const step = Math.min(upTo, row.trimmed + SWEEP_ROWS_MAX)
      statements.trimKeys.run(row.id, row.trimmed, step)
      statements.trimRecords.run(row.id, row.trimmed, step)
      statements.moveTrimmed.run(step, row.id)
      return step < upTo
    },
    'log.delete': ({ stream }) => {
      const row = find(stream)
      if (row === undefined) return false
      statements.deleteStream.run(row.id)
      statements.deleteCheckpoint.run(row.id)
      statements.addGarbage.run(row.id)
      return true
    },
    'log.sweep': () => {
      const garbage = statements.garbage.get() as { stream: number } | undefined
      if (garbage === undefined) return false
      const records = statements.sweepRecords.run(garbage.stream, SWEEP_ROWS_MAX).changes
      const keys = statements.sweepKeys.run(garbage.stream, SWEEP_ROWS_MAX).changes
      if (records === 0 && keys === 0) statements.removeGarbage.run(garbage.stream)
      return true
    },
  }
}

function conflict(stream: string, expect: number, head: number): EngineError {
  const found = head === 0 ? 'no record yet' : formatPosition(head)
  const wanted = expect === 0 ? 'no record yet' : formatPosition(expect)
  return new EngineError('log_conflict', `the head of ${stream} is ${found}, expected ${wanted}`, {
    details: { head: head === 0 ? null : formatPosition(head) },
  })
}

function beyondHead(argument: string, stream: string): EngineError {
  return invalid(argument, `is beyond the head of ${stream}`)
}
