/** What the command line takes from its environment; no other file of this package reads it. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const environment = process.env

/** The checkout (or installed package) that this file belongs to. */
export const repository = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** Things that are the same for every checkout: Node.js, runsc, the demo's data. */
export const cacheDirectory = join(
  environment.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'sandlot',
)

/** A runsc to take, whatever else there is. */
export const runscGiven = environment.SANDLOT_RUNSC

/** Guest agent and host helper to take in place of those of `native/`, where both are given. */
export const nativeGiven =
  environment.SANDLOT_AGENT && environment.SANDLOT_HELPER
    ? { agent: environment.SANDLOT_AGENT, helper: environment.SANDLOT_HELPER }
    : undefined

/** An index of Python packages in place of the public one, as pip reads it. */
export const pythonIndex = environment.PIP_INDEX_URL ?? 'https://pypi.org/simple'

/** Where `go` puts what it installs when it is not on PATH. */
export const searchPath = [
  environment.PATH ?? '',
  '/usr/local/go/bin',
  join(homedir(), '.cargo/bin'),
].join(':')

export const isContinuousIntegration = environment.CI !== undefined && environment.CI !== ''

/** The `sandlot` script at the top of the checkout. */
export const bootstrapScript = join(repository, 'sandlot')

export const nativeDirectory = join(repository, 'native')
