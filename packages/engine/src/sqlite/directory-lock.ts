import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { EngineError } from '../error.ts'
import { isBusy } from './sqlite-error.ts'

/**
 * Takes the data directory for this process: an exclusive SQLite lock on a file of its own, which the kernel gives free
 * whatever way the process ends. The owner's pid lies beside it, for the message alone.
 *
 * Nothing else may open `lock.db`: closing any other descriptor of it would drop this process's lock.
 */
export function lockDirectory(directory: string): Disposable {
  const database = new DatabaseSync(join(directory, 'lock.db'), { timeout: 0 })
  try {
    // No journal file: a full disk must not keep anybody from taking the lock.
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (isBusy(error)) throw locked(directory)
    throw error
  }
  writeOwner(directory)
  return { [Symbol.dispose]: () => database.close() }
}

function locked(directory: string): EngineError {
  const pid = readOwner(directory)
  const who = pid === null ? 'another process' : `process ${pid}`
  return new EngineError('directory_locked', `${who} has the data directory ${directory}`, {
    ...(pid === null ? {} : { hint: `Stop process ${pid}, or use another data directory.` }),
    details: { pid },
  })
}

/** A full disk must not keep the owner from starting: only the message is poorer. */
function writeOwner(directory: string): void {
  try {
    writeFileSync(join(directory, 'owner'), `${process.pid}\n`, { mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

function readOwner(directory: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(join(directory, 'owner'), 'utf8'), 10)
    return Number.isSafeInteger(pid) ? pid : null
  } catch {
    return null
  }
}
