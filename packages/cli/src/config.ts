/** What the command line takes from its environment; no other file of this package reads it. */
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout (or installed package) that this file belongs to. */
export const repository = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** The `sandlot` script at the top of the checkout. */
export const bootstrapScript = join(repository, 'sandlot')

/** Where the set-up looks for things, and where it puts them. */
export interface Place {
  /** Things that are the same for every checkout: Node.js, runsc, native programs, the demo's data. `$XDG_CACHE_HOME/sandlot` */
  readonly cacheDirectory: string
  /** The Rust workspace. */
  readonly nativeDirectory: string
  /** What cargo downloads, and the user's own configuration of it where that lies elsewhere. `CARGO_HOME` */
  readonly cargoHome: string
  readonly cargoConfig?: string
  /** Directories with programs, as PATH has them. */
  readonly searchPath: string
  /** A runsc to take, whatever else there is. `SANDLOT_RUNSC` */
  readonly runscGiven?: string
  /** Guest agent and host helper in place of those of `native/`, where both are given. `SANDLOT_AGENT`, `SANDLOT_HELPER` */
  readonly nativeGiven?: { readonly agent: string; readonly helper: string }
  /** Where running sandboxes have their sockets and pipes; default the daemon's own. `SANDLOT_RUN_DIRECTORY` */
  readonly runDirectory?: string
  /** An index of Python packages, as pip reads it. `PIP_INDEX_URL` */
  readonly pythonIndex: string
  /** Where gVisor publishes its releases. */
  readonly gvisorReleases: string
}

type Environment = Readonly<Record<string, string | undefined>>

/** An empty variable counts as none. */
export function placeOf(environment: Environment, home: string = homedir()): Place {
  const { SANDLOT_RUNSC, SANDLOT_AGENT, SANDLOT_HELPER, SANDLOT_RUN_DIRECTORY } = environment
  const cacheDirectory = join(cacheHome(environment, home), 'sandlot')
  return {
    cacheDirectory,
    nativeDirectory: join(repository, 'native'),
    ...(environment.CARGO_HOME
      ? { cargoHome: environment.CARGO_HOME }
      : {
          cargoHome: join(cacheDirectory, 'cargo'),
          cargoConfig: join(home, '.cargo/config.toml'),
        }),
    // Where the installers of Go and Rust put them when they are not on PATH.
    searchPath: [
      environment.PATH ?? '/usr/local/bin:/usr/bin:/bin',
      '/usr/local/go/bin',
      join(home, '.cargo/bin'),
    ].join(':'),
    ...(SANDLOT_RUNSC ? { runscGiven: SANDLOT_RUNSC } : {}),
    ...(SANDLOT_AGENT && SANDLOT_HELPER
      ? { nativeGiven: { agent: SANDLOT_AGENT, helper: SANDLOT_HELPER } }
      : {}),
    ...(SANDLOT_RUN_DIRECTORY ? { runDirectory: SANDLOT_RUN_DIRECTORY } : {}),
    pythonIndex: environment.PIP_INDEX_URL || 'https://pypi.org/simple',
    gvisorReleases: 'https://storage.googleapis.com/gvisor/releases/release',
  }
}

/** This machine's. */
export const place: Place = placeOf(process.env)

/** What this terminal calls itself: `TERM`. */
export const ownTerm: string | undefined = process.env.TERM || undefined

/** A relative one is to be ignored, says the XDG specification. */
function cacheHome({ XDG_CACHE_HOME }: Environment, home: string): string {
  return XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(home, '.cache')
}
