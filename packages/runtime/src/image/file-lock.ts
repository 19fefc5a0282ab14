import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 100
const SQLITE_BUSY = 5

/**
 * An exclusive lock on a file of its own, over all processes of this machine. It is SQLite's lock on an empty database, so the
 * kernel takes it back whatever way its holder ends: there is no stale lock to detect. The file stays.
 */
export async function acquireFileLock(path: string, signal: AbortSignal): Promise<Disposable> {
  for (;;) {
    signal.throwIfAborted()
    const lock = tryFileLock(path)
    if (lock) return lock
    await sleep(POLL_MS, undefined, { signal })
  }
}

/** Undefined when somebody has it, this process included. */
export function tryFileLock(path: string): Disposable | undefined {
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    // Nothing is written: a lock is to be had on a full disk too, where something is to be removed.
    database.exec('PRAGMA journal_mode=OFF; BEGIN EXCLUSIVE')
  } catch (cause) {
    database.close()
    if (cause instanceof Error && 'errcode' in cause && cause.errcode === SQLITE_BUSY)
      return undefined
    throw cause
  }
  return { [Symbol.dispose]: () => database.close() }
}
