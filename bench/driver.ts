import { join } from 'node:path'
import { GvisorDriver, gvisorOptions, type Sandbox } from '@sandlot/runtime'
import type { BenchContext } from './bench.ts'
import { cacheDirectory } from './config.ts'
import { TRUE_COMMAND } from './spec.ts'
import { stateDirectory } from './temporary.ts'

export interface BenchDriver {
  readonly driver: GvisorDriver
  /** Its last name is that of the parent of all cgroups of the driver. */
  readonly stateDirectory: string
}

/** The product's driver in this process, over a state directory of its own. */
export async function openDriver(context: BenchContext): Promise<BenchDriver> {
  const directory = await stateDirectory(context)
  const driver = new GvisorDriver(
    gvisorOptions({
      stateDirectory: directory,
      dataDirectory: join(cacheDirectory, 'bench-data'),
    }),
  )
  context.scope.use(driver)
  await driver.recover()
  return { driver, stateDirectory: directory }
}

let lastExec = 0

/** Runs `true` in the main world and fails unless it succeeds. */
export async function execTrue({ guest }: Sandbox): Promise<void> {
  const { exitCode } = await guest.exec.run({
    world: 'main',
    exec: `bench${++lastExec}`,
    argv: TRUE_COMMAND,
    env: [],
    cwd: '/',
  })
  if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`)
}
