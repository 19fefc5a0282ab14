import { join } from 'node:path'
import { type Engine, EngineError, openSqliteEngine, RESTORE_HINT } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { DaemonOptions } from './config.ts'

const MEND =
  'Restore a backup into a new directory: `sandlot restore-backup FILE --data-directory NEW`, then serve from there. Keep this one for whoever looks into it.'

/** The engine of a data directory. What is wrong with the directory is told as the caller's. */
export async function openEngine({
  dataDirectory,
  durability,
}: Pick<DaemonOptions, 'dataDirectory' | 'durability'>): Promise<Engine> {
  const directory = join(dataDirectory, 'engine')
  try {
    return await openSqliteEngine({ directory, durability })
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    const { code, message, details } = error
    const hint = error.hint === RESTORE_HINT ? MEND : error.hint
    // All others are about the directory that was chosen.
    throw new SandlotError(code === 'disk_full' ? code : 'invalid_request', message, {
      hint,
      details: { ...details },
      cause: error,
    })
  }
}
