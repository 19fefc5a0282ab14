import type { Clock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import { EngineError } from '../error.ts'
import type { BusFaults } from '../in-process-bus.ts'

export interface SqliteEngineOptions {
  /** Created where it is missing, mode 0700. It belongs to one live process at a time. */
  readonly directory: string
  /**
   * `process` (default): survives SIGKILL of any process; loss of power may take the last moments.
   * `power`: survives loss of power as well; every commit waits for the disk.
   */
  readonly durability?: 'process' | 'power'
  readonly clock?: Clock
  /** Test mode of the bus: payloads are copied, delayed and doubled by seed. */
  readonly busFaults?: BusFaults
}

/** Errors: `directory_locked`, `directory_unusable`, `schema_newer`, `disk_full`, `storage_failed`. */
export async function openSqliteEngine(options: SqliteEngineOptions): Promise<Engine> {
  throw new EngineError('directory_unusable', `cannot open ${options.directory}`)
}
