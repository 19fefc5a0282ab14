/**
 * Finds or brings gVisor's `runsc`, in this order: the given one; one that was brought before; one on PATH that is of a listed
 * version and starts a sandbox; the official release bundle; a build of the Go module.
 */

import { join } from 'node:path'
import { RUNSC_VERSIONS } from '@sandlot/protocol'
import { type Place, place as thisMachine } from '../config.ts'
import { Failure } from '../failure.ts'
import { locked } from './lock.ts'
import { findProgram, isExecutable } from './program.ts'
import { RUNSC_DIRECTORIES, runscFromGo, runscFromRelease } from './runsc-sources.ts'
import { isListed, runscVersion } from './runsc-version.ts'
import { type Step, signalOf } from './step.ts'

export interface RunscOptions extends Step {
  readonly place?: Place
  /** Starts a sandbox with it. Fails with the reason why that doesn't work. */
  readonly tryOut: (runsc: string) => Promise<void>
}

/** The absolute path of a runsc of a listed version. */
export async function ensureRunsc(options: RunscOptions): Promise<string> {
  const { place = thisMachine, report } = options
  if (place.runscGiven) return await checkGiven(place.runscGiven, options.signal)
  const found = (await findBrought(place)) ?? (await fromPath(options))
  if (found) return found
  const lock = {
    directory: place.cacheDirectory,
    name: 'runsc',
    onWait: () => report('waiting for another sandlot, which brings runsc'),
    ...signalOf(options),
  }
  return await locked(lock, async () => (await findBrought(place)) ?? (await bring(options)))
}

/** The runsc that `ensureRunsc` takes as things are: nothing is brought, nothing is tried. */
export async function findRunsc(place: Place = thisMachine): Promise<string | undefined> {
  if (place.runscGiven) return await checkGiven(place.runscGiven)
  return (await findBrought(place)) ?? (await listedOnPath(place))
}

async function findBrought(place: Place): Promise<string | undefined> {
  for (const directory of RUNSC_DIRECTORIES) {
    const path = join(place.cacheDirectory, directory, 'runsc')
    if (await isExecutable(path)) return path
  }
  return undefined
}

async function fromPath(options: RunscOptions): Promise<string | undefined> {
  const { place = thisMachine, report, signal, tryOut } = options
  const path = await listedOnPath(place, signal)
  if (path === undefined) return undefined
  try {
    await tryOut(path)
    return path
  } catch (error) {
    signal?.throwIfAborted()
    report(`${path} starts no sandbox (${(error as Error).message}), so another is brought`)
    return undefined
  }
}

async function listedOnPath(place: Place, signal?: AbortSignal): Promise<string | undefined> {
  const path = await findProgram('runsc', place.searchPath)
  return path && isListed(await runscVersion(path, signal)) ? path : undefined
}

async function bring(options: RunscOptions): Promise<string> {
  const problems: string[] = []
  for (const source of [runscFromRelease, runscFromGo]) {
    try {
      return await source(options)
    } catch (error) {
      options.signal?.throwIfAborted()
      problems.push((error as Error).message)
    }
  }
  throw new Failure(
    `there is no runsc, and none could be brought: ${problems.join('; ')}`,
    `install Go (https://go.dev/dl) and run this again, or set SANDLOT_RUNSC to a runsc of version ${listed}`,
  )
}

async function checkGiven(path: string, signal?: AbortSignal): Promise<string> {
  const found = await runscVersion(path, signal)
  if (isListed(found)) return path
  throw new Failure(
    `SANDLOT_RUNSC=${path} is ${found ? `version ${found}` : 'no runsc that runs'}`,
    `set it to a runsc of version ${listed}, or unset it to have one brought`,
  )
}

const listed = RUNSC_VERSIONS.join(' or ')
