import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type GvisorOptions, gvisorOptions, probeMachine } from '@sandlot/runtime'
import { cacheDirectory } from './config.ts'
import { expectNoLeaks } from './leaks.ts'
import { temporaryDirectory } from './temporary-directory.ts'

/** Where a driver of its own keeps what it has; nothing else on this machine uses these places. */
export interface GvisorPlaces extends AsyncDisposable {
  readonly options: GvisorOptions
}

/** Why this machine has no gVisor for tests; empty where it has. */
export async function whyNoGvisor(): Promise<string> {
  const findings = await probeMachine(optionsAt(join(cacheDirectory, 'test-data')), undefined)
  return findings
    .filter(({ ok, required }) => required && !ok)
    .map(({ name, found, mend }) => `${name}: ${found} (${mend})`)
    .join('; ')
}

/** Places for one driver. They go with their scope, which throws with all that the driver left on the machine. */
export async function gvisorPlaces(): Promise<GvisorPlaces> {
  // Not among other temporary files: those may be in memory, and disks of sandboxes want a disk.
  const data = await temporaryDirectory(join(cacheDirectory, 'test-data'))
  const options = optionsAt(data.path)
  return {
    options,
    [Symbol.asyncDispose]: async () => {
      await expectNoLeaks(options)
      await rm(options.stateDirectory, { recursive: true, force: true })
      await data[Symbol.asyncDispose]()
    },
  }
}

function optionsAt(dataDirectory: string): GvisorOptions {
  const stateDirectory = `/run/sandlot-test-${randomBytes(4).toString('hex')}`
  return gvisorOptions({ stateDirectory, dataDirectory })
}
