/** Cargo, kept to our own places: what it downloads goes to the cache, what it builds to the checkout. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { type Place, place as thisMachine } from '../config.ts'
import { findProgram, type ProgramEnd, type ProgramOptions, runProgram } from './program.ts'

export type CargoOptions = Pick<ProgramOptions, 'timeoutMs' | 'signal' | 'onLine'> & {
  readonly place?: Place
}

/** Runs cargo in `native/`; undefined where there is none. The user's own settings, such as a mirror of the registry, hold. */
export async function runCargo(
  argv: readonly string[],
  { place = thisMachine, ...options }: CargoOptions,
): Promise<ProgramEnd | undefined> {
  const cargo = await findProgram('cargo', place.searchPath)
  if (cargo === undefined) return undefined
  const { nativeDirectory, cargoHome, cargoConfig } = place
  const hasConfig = cargoConfig !== undefined && (await exists(cargoConfig))
  return await runProgram(cargo, hasConfig ? ['--config', cargoConfig, ...argv] : argv, {
    ...options,
    cwd: nativeDirectory,
    env: {
      CARGO_HOME: cargoHome,
      CARGO_TARGET_DIR: join(nativeDirectory, 'target'),
      // Of what went wrong its last lines are shown: they are to say what, not where in cargo.
      RUST_BACKTRACE: '0',
    },
  })
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}
