import { join } from 'node:path'
import type { BackupFile, BackupOptions } from '../backup.ts'
import type { BusFaults } from '../bus-delivery.ts'
import type { Clock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import { EngineError } from '../error.ts'
import { InProcessBus } from '../in-process-bus.ts'
import { backupFiles } from './backup-files.ts'
import { BlobFiles } from './blob-files.ts'
import { SqliteBlobs } from './blobs.ts'
import { Journal } from './journal.ts'
import { SqliteKv } from './kv.ts'
import { SqliteLog } from './log.ts'
import { SqliteQueue } from './queue.ts'
import { openError } from './sqlite-error.ts'
import type { StorageOptions } from './thread-message.ts'

/** Options in full, as the opener compiles them. */
export interface SqliteEngineParts {
  readonly storage: StorageOptions
  readonly clock: Clock
  readonly busFaults: BusFaults | undefined
}

/**
 * One data directory:
 * - `engine.db`: log, queue, kv and pins, written by the storage thread alone,
 * - `blobs/`: content by digest,
 * - `lock.db`, `owner`: who has the directory.
 */
export class SqliteEngine implements Engine {
  readonly log: SqliteLog
  readonly queue: SqliteQueue
  readonly kv: SqliteKv
  readonly blobs: SqliteBlobs
  readonly bus: InProcessBus
  readonly #directory: string
  readonly #journal: Journal
  readonly #closing = new AbortController()

  private constructor(journal: Journal, files: BlobFiles, parts: SqliteEngineParts) {
    const { clock, busFaults } = parts
    const closing = this.#closing.signal
    this.#directory = parts.storage.directory
    this.#journal = journal
    this.log = new SqliteLog(journal, closing)
    this.queue = new SqliteQueue(journal, clock, closing)
    this.kv = new SqliteKv(journal, clock, closing)
    this.blobs = new SqliteBlobs({ files, journal, clock, closing })
    this.bus = new InProcessBus({ clock, closing, ...(busFaults && { faults: busFaults }) })
  }

  /** The journal has the directory's lock, so it comes first. */
  static async open(parts: SqliteEngineParts): Promise<SqliteEngine> {
    const { directory, durability } = parts.storage
    const journal = await Journal.open(parts.storage)
    try {
      const syncDirectories = durability === 'power'
      const files = await BlobFiles.open(join(directory, 'blobs'), { syncDirectories })
      return new SqliteEngine(journal, files, parts)
    } catch (error) {
      await journal.close()
      throw openError(error, directory)
    }
  }

  backup({ signal }: BackupOptions = {}): AsyncGenerator<BackupFile> {
    return backupFiles(
      { directory: this.#directory, journal: this.#journal, blobs: this.blobs },
      signal,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new EngineError('closed', 'the engine is closed'))
    await this.blobs.close()
    await this.#journal.close()
  }

  /** Ends everything at once without closing, as the death of the process would. For tests of recovery. */
  async crash(): Promise<void> {
    this.#closing.abort(new EngineError('closed', 'the engine was ended'))
    await this.#journal.crash()
  }
}
