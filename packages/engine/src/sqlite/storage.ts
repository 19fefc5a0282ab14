import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { EngineError } from '../error.ts'
import { type BackUpOutcome, backUp } from './back-up.ts'
import { lockDirectory } from './directory-lock.ts'
import { kvOperations } from './kv-operations.ts'
import { logOperations } from './log-operations.ts'
import { checkSchema, migrate } from './migrate.ts'
import { pinOperations } from './pin-operations.ts'
import { queueOperations } from './queue-operations.ts'
import { reclaimOperations } from './reclaim.ts'
import { openError, RESTORE_HINT } from './sqlite-error.ts'
import type { StorageOptions } from './thread-message.ts'
import { Transactions } from './transaction.ts'

/** The open database of one data directory. */
export interface Storage {
  readonly transactions: Transactions
  /** Never rejects. No transaction may run until `begun` is called, see `backUp`. */
  backUp(path: string, begun: () => void): Promise<BackUpOutcome>
  close(): void
}

/** Pages of the write-ahead log before it is folded into the database: 16 MiB. */
const CHECKPOINT_PAGES = 4096
const CACHE_KIB = 16 * 1024
const PAGE_BYTES = 4096

/** Locks the directory, checks and migrates the schema. Holds nothing when it throws. */
export function openStorage(options: StorageOptions): Storage {
  const stack = new DisposableStack()
  try {
    mkdirSync(options.directory, { recursive: true, mode: 0o700 })
    stack.use(lockDirectory(options.directory))
    refuseLost(options.directory)
    const database = new DatabaseSync(join(options.directory, 'engine.db'))
    stack.defer(() => database.close())
    // Before the first read: the index of the write-ahead log then needs no file, which a full disk could not hold.
    database.exec('PRAGMA locking_mode = EXCLUSIVE')
    checkSchema(database)
    configure(database, options)
    migrate(database)
    const transactions = new Transactions(database, {
      ...logOperations(database),
      ...queueOperations(database),
      ...kvOperations(database),
      ...pinOperations(database),
      ...reclaimOperations(database),
    })
    const held = stack.move()
    return {
      transactions,
      backUp: (path, begun) => backUp(database, path, begun),
      close: () => held.dispose(),
    }
  } catch (error) {
    stack.dispose()
    throw openError(error, options.directory)
  }
}

/** Blobs come after the first database: where they are and that is not, or is empty, starting anew would hide what was lost. */
function refuseLost(directory: string): void {
  const sizeBytes = (name: string) =>
    statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0
  if (sizeBytes('engine.db') + sizeBytes('engine.db-wal') > 0) return
  if (!existsSync(join(directory, 'blobs'))) return
  const message = `the database ${join(directory, 'engine.db')} is empty or gone, and the directory was used before`
  throw new EngineError('directory_unusable', message, { hint: RESTORE_HINT })
}

function configure(database: DatabaseSync, options: StorageOptions): void {
  // Holds for a database that is new: what is freed of it can be given back to the disk, see `reclaim.ts`.
  database.exec('PRAGMA auto_vacuum = INCREMENTAL')
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = ${options.durability === 'power' ? 'FULL' : 'NORMAL'};
    PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
    PRAGMA journal_size_limit = ${2 * CHECKPOINT_PAGES * PAGE_BYTES};
    PRAGMA cache_size = -${CACHE_KIB};
    PRAGMA temp_store = MEMORY;
  `)
  if (options.databaseBytesMax !== undefined) {
    database.exec(`PRAGMA max_page_count = ${Math.floor(options.databaseBytesMax / PAGE_BYTES)}`)
  }
}
