/** One set-up at a time on this machine, also across processes. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'

const RETRY_MS = 200

/**
 * Runs `work` while holding the lock `name` in `directory`. SQLite's own file lock serves here, since the kernel takes it back
 * when its holder is killed; Node.js has no flock.
 */
export async function locked<T>(
  directory: string,
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(directory, { recursive: true })
  const database = new DatabaseSync(join(directory, `${name}.lock`))
  try {
    while (!take(database)) await delay(RETRY_MS)
    return await work()
  } finally {
    database.close()
  }
}

function take(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if (/locked|busy/.test((error as Error).message)) return false
    throw error
  }
}
