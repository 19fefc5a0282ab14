/** One set-up at a time on this machine, also across processes. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'

const RETRY_MS = 100
const WAIT_MS = 60 * 60_000
const SQLITE_BUSY = 5

export interface LockOptions {
  readonly directory: string
  readonly name: string
  readonly signal?: AbortSignal
  /** Called once, when somebody else holds it. */
  readonly onWait?: () => void
}

/**
 * Runs `work` while holding the lock `name` in `directory`. SQLite's own file lock serves here, since the kernel takes it back
 * when its holder is killed; Node.js has no flock.
 */
export async function locked<T>(options: LockOptions, work: () => Promise<T>): Promise<T> {
  const { directory, name, signal, onWait } = options
  await mkdir(directory, { recursive: true })
  const path = join(directory, `${name}.lock`)
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    const untilMs = performance.now() + WAIT_MS
    for (let tries = 0; !take(database); tries++) {
      if (tries === 0) onWait?.()
      if (performance.now() > untilMs) throw heldTooLong(path)
      await delay(RETRY_MS, undefined, { signal }).catch(() => signal?.throwIfAborted())
    }
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
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return false
    throw error
  }
}

function heldTooLong(path: string): Failure {
  return new Failure(
    `another sandlot has held ${path} for an hour`,
    `see who does with \`fuser ${path}\`, and end it`,
  )
}
