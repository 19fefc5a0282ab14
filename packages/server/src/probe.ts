import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { gvisorOptions, type ProbeFinding, trySandbox } from '@sandlot/runtime'
import { type DaemonInput, daemonOptions, type GvisorPrograms } from './config.ts'
import { openDriver } from './driver.ts'
import { fromRuntime } from './failure.ts'

/** What this machine has and lacks for a daemon of these options. Starts nothing. */
export async function probeMachine(input: DaemonInput = {}): Promise<readonly ProbeFinding[]> {
  return await openDriver(daemonOptions(input)).driver.probe()
}

export interface TryMachineOptions {
  readonly gvisor: GvisorPrograms
  /** Where running sandboxes have their sockets and pipes; the trial makes a directory of its own below it. Default /run/sandlot. */
  readonly runDirectory?: string
  readonly signal?: AbortSignal
}

/** Starts one sandbox with these programs and stops it. Fails with the reason why it doesn't work; leaves nothing. */
export async function tryMachine(options: TryMachineOptions): Promise<void> {
  const { runDirectory } = daemonOptions({ runDirectory: options.runDirectory })
  const directory = join(runDirectory, `sandlot-trial-${randomBytes(3).toString('hex')}`)
  try {
    await trySandbox(
      gvisorOptions({
        ...options.gvisor,
        stateDirectory: directory,
        dataDirectory: join(directory, 'data'),
        startsAtOnce: 1,
      }),
      options.signal ? { signal: options.signal } : {},
    )
  } catch (error) {
    throw fromRuntime(error)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
