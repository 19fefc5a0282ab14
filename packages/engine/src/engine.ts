import type { BackupFile, BackupOptions } from './backup.ts'
import type { Blobs } from './blobs.ts'
import type { Bus } from './bus.ts'
import type { Kv } from './kv.ts'
import type { Log } from './log.ts'
import type { Queue } from './queue.ts'

/**
 * Five durable primitives, and the only place where the control plane keeps anything.
 *
 * - Payloads are bytes: the caller encodes. A payload must not change until the call it was given to has settled.
 * - Each primitive keeps its own promise. There is no atomicity across two: a crash may fall between any two calls, and what
 *   was called but not yet answered may or may not have happened.
 * - Every call takes a signal. Calls that wait for somebody else (`tail`, `watch`, `lease`, `request`, `subscribe`) end by the
 *   signal, by their own deadline, or when the engine closes.
 * - An implementation passes the suites in `conformance/`.
 *
 * Disposing waits for the calls under way, ends those that wait with `closed`, and gives the data directory free. It is
 * idempotent, and not needed for safety: a process may die at any instant.
 */
export interface Engine extends AsyncDisposable {
  readonly log: Log
  readonly queue: Queue
  readonly kv: Kv
  readonly blobs: Blobs
  readonly bus: Bus

  /**
   * Everything durable as of one instant after the call, while others go on: files from which an engine of the same kind opens. Contents
   * that nothing pins are left out. Nothing is collected until the iteration ends, so it is to be read without pause; one at a time.
   * Errors: `disk_full` (a copy of the records is made first), `storage_failed`.
   */
  backup(options?: BackupOptions): AsyncIterable<BackupFile>
}
