import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { FakeDriver, GvisorDriver, gvisorOptions, type RuntimeDriver } from '@sandlot/runtime'
import type { DaemonOptions } from './config.ts'
import { toSandlotError } from './failure.ts'

/**
 * The driver that the options name. `own`: this daemon disposes of it.
 * @throws SandlotError `unsupported` where this machine or the directories don't allow it
 */
export function openDriver(options: DaemonOptions): {
  readonly driver: RuntimeDriver
  readonly own: boolean
} {
  const { driver, gvisor } = options
  if (typeof driver === 'object') return { driver, own: false }
  if (driver === 'fake') return { driver: new FakeDriver(), own: true }
  const programs = gvisorOptions({
    ...gvisor,
    stateDirectory: stateDirectory(options),
    dataDirectory: join(options.dataDirectory, 'runtime'),
    startsAtOnce: options.creationsMax,
  })
  try {
    return { driver: new GvisorDriver(programs), own: true }
  } catch (error) {
    throw toSandlotError(error)
  }
}

/** One a data directory, so that two daemons on one machine never take each other's sandboxes for their own. */
function stateDirectory({ runDirectory, dataDirectory }: DaemonOptions): string {
  const hash = createHash('sha256').update(dataDirectory).digest('hex').slice(0, 8)
  return join(runDirectory, `sandlot-${hash}`)
}
