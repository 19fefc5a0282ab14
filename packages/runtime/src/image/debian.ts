/**
 * Builds a minimal Debian by mmdebstrap. Its output streams into the layer as it is made; what it unpacks on the way lies in
 * the build's own temporary directory.
 *
 * mmdebstrap runs as root, as PID 1 of a process and a mount namespace of its own that end with it: killed at any moment, even
 * together with this daemon, it leaves no process and no mount, only that directory.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CONTAINED, killContained } from '../process/contained.ts'
import { run } from '../process/run.ts'
import { runStreaming } from '../process/run-streaming.ts'
import { readAptSources, sourcesForSuite } from './apt-sources.ts'
import type { BuildContext, BuiltImage } from './build.ts'
import { debianProgress } from './debian-progress.ts'
import { defaultImageConfig } from './image.ts'
import { diskFull, ImageError, isDiskFull } from './image-error.ts'
import { imageLimits } from './limits.ts'
import type { SourceOf } from './source.ts'
import { writeTarLayer } from './tar-layer.ts'

export interface DebianOptions {
  /** Default `/etc/apt`. */
  readonly aptDirectory?: string
  /** Default `/etc/os-release`. */
  readonly osReleasePath?: string
  /** Added to the environment of the build, for instance proxies. */
  readonly env?: Readonly<Record<string, string>>
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Documents and translations stay out, also of what is installed later; licences stay in. */
const SLIM = [
  'path-exclude=/usr/share/doc/*',
  'path-include=/usr/share/doc/*/copyright',
  'path-exclude=/usr/share/man/*',
  'path-exclude=/usr/share/info/*',
  'path-exclude=/usr/share/lintian/*',
  'path-exclude=/usr/share/locale/*',
  'path-include=/usr/share/locale/locale.alias',
  'force-unsafe-io',
]

/** The day of the last password change would be the day of the build. */
const FIXED_SHADOW_DATES = String.raw`sed -i -E 's/^([^:]*:[^:]*:)[0-9]+:/\119000:/' "$1"/etc/shadow`

/** Some packages link into these, Java's for one, and fail where they are missing. */
const MANUAL_DIRECTORIES = 'for n in 1 2 3 4 5 6 7 8; do mkdir -p "$1"/usr/share/man/man$n; done'

/** What belongs to the machine that built the image, or is only a cache. */
const LEFT_OUT_FILES = new Set([
  'etc/resolv.conf',
  'etc/hostname',
  'etc/shadow-',
  'etc/apt/apt.conf.d/99mmdebstrap',
  'var/cache/ldconfig/aux-cache',
  'var/cache/debconf/config.dat-old',
  'var/cache/debconf/templates.dat-old',
])
const LEFT_OUT_BELOW = ['dev/', 'var/lib/apt/lists/', 'var/cache/apt/', 'var/log/']

/** The machine's own sources as mmdebstrap leaves them in the image. They stay, unless a password is in them. */
const MACHINE_SOURCES = 'etc/apt/sources.list.d/0000'

/** Settings of this machine's apt that decide whether it can reach its sources at all. */
const APT_SETTINGS =
  /^Acquire::((https?|ftp)::(Proxy|CaInfo|Verify)[^ ]*|Retries|Check-(Valid-Until|Date)) /

export async function buildDebian(
  source: SourceOf<'debian'>,
  context: BuildContext,
  options: DebianOptions,
): Promise<BuiltImage> {
  const startedSeconds = Math.floor(Date.now() / 1000)
  const sources = await machineSources(source.suite, options)
  const args = await mmdebstrapArguments(source, context, sources)
  const layerPath = join(context.directory, '0.erofs')
  const progress = debianProgress(source.suite, source.packages)
  const said: string[] = []
  const outcome = await runStreaming('setpriv', [...CONTAINED, 'mmdebstrap', ...args], {
    timeoutMs: imageLimits.debianBuildMs,
    signal: context.signal,
    kill: killContained,
    cwd: context.directory,
    env: { ...options.env, PATH, LC_ALL: 'C.UTF-8', TMPDIR: join(context.directory, 'root') },
    lineBytesMax: imageLimits.logLineBytesMax,
    onStderrLine: (line) => {
      said.push(line)
      if (said.length > imageLimits.logLinesKept) said.shift()
      context.detail(line)
      const news = progress(line)
      if (news !== undefined) context.log(news)
    },
    consume: (stdout) =>
      writeTarLayer(stdout, {
        path: layerPath,
        volatileAfterSeconds: startedSeconds - 1,
        excludes: (path) =>
          isLeftOut(path) || (hasCredentials(sources) && path.startsWith(MACHINE_SOURCES)),
        onLog: context.log,
      }),
  })
  const { consumed } = outcome
  if ('error' in consumed && isDiskFull(consumed.error)) {
    throw diskFull(context.directory, consumed.error)
  }
  if (outcome.problem !== undefined) throw failure(source, context, outcome, said)
  if ('error' in consumed) throw consumed.error
  const { digest, sizeBytes } = consumed.value
  return {
    layers: [{ path: layerPath, digest, sizeBytes }],
    config: {
      ...defaultImageConfig,
      env: { ...defaultImageConfig.env, LANG: 'C.UTF-8' },
    },
  }
}

async function machineSources(suite: string, options: DebianOptions): Promise<string> {
  const codename = await releaseCodename(options.osReleasePath ?? '/etc/os-release')
  const sources = await readAptSources(options.aptDirectory ?? '/etc/apt')
  return sourcesForSuite(sources, codename, suite)
}

async function mmdebstrapArguments(
  source: SourceOf<'debian'>,
  context: BuildContext,
  sources: string,
): Promise<string[]> {
  const list = join(context.directory, 'debian')
  await writeFile(list, sources)
  await mkdir(join(context.directory, 'root'), { mode: 0o755 })
  const settings = await aptSettings(context)
  return [
    '--mode=root',
    '--format=tar',
    '--variant=minbase',
    ...(source.packages.length > 0 ? [`--include=${source.packages.join(',')}`] : []),
    ...['Acquire::Retries "3"', 'Acquire::Languages "none"'].map((line) => `--aptopt=${line}`),
    ...settings.map((line) => `--aptopt=${line}`),
    ...SLIM.map((line) => `--dpkgopt=${line}`),
    `--essential-hook=${MANUAL_DIRECTORIES}`,
    ...(source.packages.length > 0 ? [`--extract-hook=${tryOut(source.packages)}`] : []),
    `--customize-hook=${FIXED_SHADOW_DATES}`,
    '--',
    source.suite,
    '-',
    list,
  ]
}

/** Finds a wrong name before anything is installed. The names have no character that a shell knows. */
function tryOut(packages: readonly string[]): string {
  const install = `apt-get --simulate --quiet install -- ${packages.join(' ')}`
  return `APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" ${install} >/dev/null`
}

async function aptSettings(context: BuildContext): Promise<string[]> {
  const { stdout } = await run('apt-config', ['dump'], {
    timeoutMs: 10_000,
    signal: context.signal,
  })
  return stdout
    .split('\n')
    .filter((line) => APT_SETTINGS.test(line))
    .map((line) => line.replace(/;$/, ''))
}

function hasCredentials(sources: string): boolean {
  return /:\/\/[^/\s]*@/.test(sources)
}

async function releaseCodename(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(text)?.[1] ?? ''
}

function isLeftOut(path: string): boolean {
  return LEFT_OUT_FILES.has(path) || LEFT_OUT_BELOW.some((prefix) => path.startsWith(prefix))
}

function failure(
  source: SourceOf<'debian'>,
  context: BuildContext,
  outcome: { exitCode: number | undefined; timedOut: boolean; problem?: string },
  logTail: readonly string[],
): ImageError {
  if (logTail.some((line) => line.includes('No space left on device'))) {
    return diskFull(context.directory, outcome.problem)
  }
  const name = `Debian ${source.suite} with ${source.packages.join(', ') || 'no packages'}`
  const { exitCode } = outcome
  if (outcome.timedOut) {
    const minutes = imageLimits.debianBuildMs / 60_000
    return new ImageError(
      'image_build_failed',
      `${name} was not built within ${minutes} minutes.`,
      {
        hint: 'Look at the last lines of its log: a mirror may be slow or unreachable.',
        logTail,
      },
    )
  }
  // How far it came was told before; what is left says why.
  const last = logTail.filter((line) => !/^[IW]: /.test(line)).slice(-imageLimits.logLinesInMessage)
  const message = [`${name} could not be built: ${cause(outcome)}:`, ...last].join('\n')
  return new ImageError('image_build_failed', message, {
    hint: hintFor(logTail),
    logTail,
    ...(exitCode !== undefined && { exitCode }),
  })
}

function cause(outcome: { exitCode: number | undefined; problem?: string }): string {
  if (outcome.exitCode === undefined) return outcome.problem ?? 'it did not start'
  return outcome.exitCode === 127
    ? 'mmdebstrap is not installed'
    : `mmdebstrap ended with exit code ${outcome.exitCode}`
}

function hintFor(logTail: readonly string[]): string {
  const log = logTail.join('\n')
  if (/failed to execute mmdebstrap/.test(log)) return 'Install it: apt-get install mmdebstrap'
  const missing = /Unable to locate package (\S+)/.exec(log)
  if (missing) return `This suite has no package ${missing[1]}: check its name.`
  if (/Release' does not have|404\s+Not Found/.test(log)) {
    return "This machine's mirrors don't have this suite: check its name, or its sources in /etc/apt."
  }
  return 'The last lines of its log say why.'
}
