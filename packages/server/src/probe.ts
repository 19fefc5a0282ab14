import type { ProbeFinding } from '@sandlot/runtime'
import { type DaemonInput, daemonOptions } from './config.ts'
import { openDriver } from './driver.ts'

/** What this machine has and lacks for a daemon of these options. Starts nothing. */
export async function probeMachine(input: DaemonInput = {}): Promise<readonly ProbeFinding[]> {
  return await openDriver(daemonOptions(input)).driver.probe()
}
