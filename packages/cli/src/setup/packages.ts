/** The Debian packages that bring the programs that can't be brought otherwise. */
import { getuid } from 'node:process'
import { type Place, place as thisMachine } from '../config.ts'
import { Failure } from '../failure.ts'
import { locked } from './lock.ts'
import { findProgram, type ProgramEnd, runProgram } from './program.ts'
import { type Step, signalOf } from './step.ts'

const INSTALL_TIMEOUT_MS = 10 * 60_000
/** Another apt may be at work, such as the machine's own upgrades. */
const WAIT_FOR_DPKG = ['-o', 'DPkg::Lock::Timeout=120']

/** A program, and the Debian package that brings it. */
export interface Need {
  readonly program: string
  readonly package: string
}

/** Images of Debian are built, and those of registries fetched, with these. */
export const DAEMON_NEEDS: readonly Need[] = [
  { program: 'skopeo', package: 'skopeo' },
  { program: 'mmdebstrap', package: 'mmdebstrap' },
  { program: 'unshare', package: 'util-linux' },
  { program: 'setpriv', package: 'util-linux' },
  // Interfaces of sandboxes with an open network.
  { program: 'ip', package: 'iproute2' },
  { program: 'nft', package: 'nftables' },
]

/** The suite checks layers with another implementation than ours. */
export const TEST_NEEDS: readonly Need[] = [{ program: 'fsck.erofs', package: 'erofs-utils' }]

export interface PackagesOptions extends Step {
  readonly needs: readonly Need[]
  readonly place?: Place
  /** Whether packages may be installed. Default: root may. */
  readonly mayInstall?: boolean
}

/** Installs what is missing, where that is allowed; else says the command that does. */
export async function ensurePackages(options: PackagesOptions): Promise<void> {
  const { place = thisMachine, mayInstall = getuid?.() === 0, report } = options
  if ((await missingOf(options)).length === 0) return
  const aptGet = await findProgram('apt-get', place.searchPath)
  if (!aptGet || !mayInstall) {
    const missing = await missingOf(options)
    throw new Failure(
      `missing: ${missing.join(', ')}`,
      `install with your package manager, on Debian as root: apt-get install -y ${missing.join(' ')}`,
    )
  }
  const lock = { directory: place.cacheDirectory, name: 'packages', ...signalOf(options) }
  await locked(lock, async () => {
    // Somebody else may have brought them meanwhile.
    const missing = await missingOf(options)
    if (missing.length === 0) return
    report(`installing Debian packages: ${missing.join(', ')}`)
    const end = await install(aptGet, missing)
    const left = end.ok ? await missingOf(options) : missing
    if (left.length > 0) throw failed(left, end)
  })
}

/**
 * Ended neither by a signal nor with this process: an installation that breaks off in the middle leaves a machine on which no
 * package can be installed until somebody mends it.
 */
async function install(aptGet: string, packages: readonly string[]): Promise<ProgramEnd> {
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  const options = { env, timeoutMs: INSTALL_TIMEOUT_MS, outlives: true }
  const argv = [...WAIT_FOR_DPKG, 'install', '-y', '--no-install-recommends', ...packages]
  const end = await runProgram(aptGet, argv, options)
  if (end.ok) return end
  // A fresh machine has no package lists yet.
  await runProgram(aptGet, ['update'], options)
  return await runProgram(aptGet, argv, options)
}

function failed(packages: readonly string[], { output }: ProgramEnd): Failure {
  return new Failure(
    `apt-get could not install ${packages.join(', ')}:\n${output.trimEnd().slice(-1500)}`,
    `run: apt-get update && apt-get install -y ${packages.join(' ')}`,
  )
}

async function missingOf({ needs, place = thisMachine }: PackagesOptions): Promise<string[]> {
  const missing = new Set<string>()
  for (const need of needs) {
    if (!(await findProgram(need.program, place.searchPath))) missing.add(need.package)
  }
  return [...missing]
}
