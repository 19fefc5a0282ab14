import { SandlotError } from '@sandlot/protocol'
import { toSandlotError } from '../failure.ts'
import type { Entry } from './entry.ts'
import { goneError } from './lend.ts'
import type { NodeParts } from './sandboxes.ts'

/** Why a sandbox did not come up, for whoever asked for it; for the log and the metrics besides. */
export async function creationError(
  entry: Entry,
  error: unknown,
  { log, numbers }: Pick<NodeParts, 'log' | 'numbers'>,
): Promise<SandlotError> {
  if (entry.stop) return goneError(await entry.over, entry.id)
  const known = toSandlotError(error)
  const failure =
    known.code === 'timeout'
      ? new SandlotError('create_failed', 'the sandbox did not come up in time', { cause: error })
      : known
  if (failure.code === 'create_failed' || failure.code === 'internal') {
    log.warn({ err: error, sandbox: entry.id }, 'a sandbox did not come up')
  }
  numbers.failed(failure.code)
  return failure
}
