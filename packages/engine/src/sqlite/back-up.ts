import { backup, DatabaseSync } from 'node:sqlite'
import { storageError } from './sqlite-error.ts'
import { type FromStorage, toPlainError } from './thread-message.ts'

export type BackUpOutcome = Extract<FromStorage, { type: 'backedUp' }>['outcome']

/** Pages that are copied before the batches that came meanwhile get their turn: 2 MiB. */
const PAGES_AT_ONCE = 512

/**
 * Writes by this very connection go into the copy too, so the copy is of the instant at which it is whole. Never rejects.
 *
 * `begun` is called once the first pages are copied, and again later: until then the caller must begin no transaction. Pages
 * are copied by another thread, and Node.js gives up where the first of its steps finds the database busy (`BackupJob` in its
 * `src/node_sqlite.cc`); later ones are tried again.
 */
export async function backUp(
  database: DatabaseSync,
  path: string,
  begun: () => void,
): Promise<BackUpOutcome> {
  try {
    await backup(database, path, { rate: PAGES_AT_ONCE, progress: begun })
    return { digests: finish(path) }
  } catch (error) {
    return { error: toPlainError(storageError(error, 'the database could not be copied')) }
  } finally {
    begun()
  }
}

/** Makes it one file, without a log beside it, and reads what it pins. */
function finish(path: string): readonly string[] {
  const copy = new DatabaseSync(path)
  try {
    copy.exec('PRAGMA journal_mode = DELETE')
    const rows = copy.prepare('SELECT DISTINCT digest FROM blob_pins ORDER BY digest').all()
    return rows.map(({ digest }) => String(digest))
  } finally {
    copy.close()
  }
}
