import { rmSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 100
const SQLITE_BUSY = 5

export interface FileLockOptions {
  /** The file stays when the lock is released, so that on a full disk none has to be made. Default: it goes. */
  readonly fileStays?: boolean
}

/**
 * An exclusive lock on a file of its own, over all processes of this machine. It is SQLite's lock on an empty database, so the
 * kernel takes it back whatever way its holder ends: there is no stale lock to detect.
 */
export async function acquireFileLock(
  path: string,
  signal: AbortSignal,
  options: FileLockOptions = {},
): Promise<Disposable> {
  for (;;) {
    signal.throwIfAborted()
    const lock = tryFileLock(path, options)
    if (lock) return lock
    await sleep(POLL_MS, undefined, { signal })
  }
}

/** Undefined when somebody has it, this process included. */
export function tryFileLock(
  path: string,
  { fileStays = false }: FileLockOptions = {},
): Disposable | undefined {
  for (;;) {
    const before = fileAt(path)
    const database = new DatabaseSync(path, { timeout: 0 })
    try {
      // Nothing is ever written, and a journal would be one more file.
      database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    } catch (cause) {
      database.close()
      if (cause instanceof Error && 'errcode' in cause && cause.errcode === SQLITE_BUSY)
        return undefined
      throw cause
    }
    // Who had the lock may have removed the file that was opened, and another have made the next one.
    if (before !== undefined && before === fileAt(path)) return heldLock(path, database, fileStays)
    database.close()
  }
}

function heldLock(path: string, database: DatabaseSync, fileStays: boolean): Disposable {
  return {
    [Symbol.dispose]: () => {
      if (database.isOpen && !fileStays) rmSync(path, { force: true })
      if (database.isOpen) database.close()
    },
  }
}

/** Which file is at a path. Asked without opening it: that would take SQLite's lock away. */
function fileAt(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found && `${found.ino} ${found.birthtimeNs}`
}
