import { EngineError } from '../error.ts'

/** Primary result codes of SQLite. */
const BUSY = 5
const IO_ERROR = 10
const CORRUPT = 11
const FULL = 13
const NOT_A_DATABASE = 26
/** Extended code: a flush to disk failed, so that nobody knows what is there. */
const IO_ERROR_FSYNC = 1034

export const RESTORE_HINT =
  'Restore a backup into a new data directory; keep this one for whoever wants to look into it.'

export function isBusy(error: unknown): boolean {
  return primary(error) === BUSY
}

/** After these, no later answer can be trusted. */
export function isFatal(error: unknown): boolean {
  const code = primary(error)
  return resultCode(error) === IO_ERROR_FSYNC || code === CORRUPT || code === NOT_A_DATABASE
}

/** Any failure of the storage thread as an error of the engine. */
export function storageError(error: unknown, what: string): EngineError {
  if (error instanceof EngineError) return error
  const message = error instanceof Error ? error.message : String(error)
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (primary(error) === FULL || code === 'ENOSPC' || code === 'EDQUOT') {
    return new EngineError('disk_full', `${what}: the disk of the data directory is full`)
  }
  const detail = primary(error) === IO_ERROR ? ` (SQLite code ${resultCode(error)})` : ''
  return new EngineError('storage_failed', `${what}: ${message}${detail}`, { cause: error })
}

/** A failure to open the data directory. */
export function openError(error: unknown, directory: string): EngineError {
  const code = primary(error)
  if (code === CORRUPT || code === NOT_A_DATABASE) {
    const message = `the database in ${directory} is damaged: ${(error as Error).message}`
    return new EngineError('directory_unusable', message, { hint: RESTORE_HINT, cause: error })
  }
  const known = storageError(error, `the data directory ${directory} could not be opened`)
  if (known.code !== 'storage_failed') return known
  return new EngineError('directory_unusable', known.message, { cause: error })
}

function primary(error: unknown): number | undefined {
  const code = resultCode(error)
  return code === undefined ? undefined : code & 0xff
}

function resultCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null | undefined)?.errcode
  return typeof code === 'number' ? code : undefined
}
