import type { BusFaults } from '../bus-delivery.ts'
import { type Clock, systemClock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import { SqliteEngine } from './engine.ts'

export interface SqliteEngineOptions {
  /** Created where it is missing, mode 0700. It belongs to one live process at a time. */
  readonly directory: string
  /**
   * `process` (default): survives SIGKILL of any process; loss of power may take the last moments.
   * `power`: survives loss of power as well; every commit waits for the disk.
   */
  readonly durability?: 'process' | 'power'
  /** Default: the machine's. */
  readonly clock?: Clock
  /** Test mode of the bus: payloads are copied, delayed and doubled by seed. */
  readonly busFaults?: BusFaults
}

/**
 * Opens the engine of one machine: a directory, and nothing else running.
 *
 * Errors: `directory_locked`, `directory_unusable`, `schema_newer`, `disk_full`.
 */
export function openSqliteEngine(options: SqliteEngineOptions): Promise<Engine> {
  const { directory, durability = 'process', clock = systemClock, busFaults } = options
  return SqliteEngine.open({ storage: { directory, durability }, clock, busFaults })
}
