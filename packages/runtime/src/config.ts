/** What the runtime takes from its environment; no other file of this package reads it. */
import { existsSync } from 'node:fs'
import { availableParallelism, homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RUNSC_VERSIONS } from '@sandlot/protocol'
import type { GvisorOptions } from './gvisor/options.ts'
import type { RegistryOptions } from './image/registry.ts'
import type { PackageSettings } from './network/packages/settings.ts'

const environment = process.env

/** Where a checkout builds its native programs. */
const built = fileURLToPath(
  new URL(`../../../native/target/${rustTarget()}/release`, import.meta.url),
)

/** Where tools of vendors put them, by the specification. */
const CDI_DIRECTORIES = ['/etc/cdi', '/var/run/cdi']

const cache = join(environment.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sandlot')

/**
 * gVisor on this machine: `SANDLOT_RUNSC`, `SANDLOT_HELPER`, `SANDLOT_AGENT` name programs, `SANDLOT_RUN_DIRECTORY`
 * and `SANDLOT_DATA_DIRECTORY` directories. `SANDLOT_SYSTRAP_FAST_PATH=1` is better where a processor is idle for each sandbox at work.
 */
export function gvisorOptions(over: Partial<GvisorOptions> = {}): GvisorOptions {
  return {
    runsc: environment.SANDLOT_RUNSC || broughtRunsc() || '/usr/local/bin/runsc',
    helper: environment.SANDLOT_HELPER || join(built, 'sandlot-helper'),
    agent: environment.SANDLOT_AGENT || join(built, 'sandlot-agent'),
    stateDirectory: environment.SANDLOT_RUN_DIRECTORY || '/run/sandlot',
    dataDirectory: environment.SANDLOT_DATA_DIRECTORY || join(cache, 'data'),
    systrap: { fastPath: environment.SANDLOT_SYSTRAP_FAST_PATH === '1' },
    gpus: {
      cdiDirectories: words(environment.SANDLOT_CDI_DIRECTORIES, ':') ?? CDI_DIRECTORIES,
      driverDirectory: '/proc/driver/nvidia/gpus',
    },
    openNetwork: {
      addresses: environment.SANDLOT_OPEN_ADDRESSES || '100.121.0.0/16',
      nameServers: words(environment.SANDLOT_OPEN_NAME_SERVERS, ',') ?? [],
    },
    startsAtOnce: 2 * availableParallelism(),
    ...over,
  }
}

/**
 * What a program that fetches images sees of the environment: `REGISTRY_AUTH_FILE`, `DOCKER_CONFIG` and `HOME` for credentials,
 * `SSL_CERT_FILE` and `SSL_CERT_DIR` for certificates, and the proxies.
 */
export function registryOptions(): RegistryOptions {
  const names = [
    ...['PATH', 'HOME', 'XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME'],
    ...['REGISTRY_AUTH_FILE', 'DOCKER_CONFIG', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
    ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'],
  ]
  const env = Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name]
      return value ? [[name, value]] : []
    }),
  )
  const settings = environment.XDG_CONFIG_HOME || join(homedir(), '.config')
  const policyPaths = [join(settings, 'containers/policy.json'), '/etc/containers/policy.json']
  return { env, policyPaths }
}

/** Where this machine says what it takes packages from: settings of apt, pip and npm, and of this process. */
export function packageSettings(over: Partial<PackageSettings> = {}): PackageSettings {
  const home = homedir()
  const given = (name: string) => (environment[name] ? [environment[name]] : [])
  return {
    env: environment,
    aptDirectory: '/etc/apt',
    osReleasePath: '/etc/os-release',
    pipFiles: [
      '/etc/pip.conf',
      join(home, '.pip', 'pip.conf'),
      join(environment.XDG_CONFIG_HOME || join(home, '.config'), 'pip', 'pip.conf'),
      ...given('PIP_CONFIG_FILE'),
    ],
    npmFiles: [
      '/usr/etc/npmrc',
      '/usr/local/etc/npmrc',
      '/etc/npmrc',
      ...given('npm_config_globalconfig'),
      environment.npm_config_userconfig || join(home, '.npmrc'),
    ],
    certificatesPath: '/etc/ssl/certs/ca-certificates.crt',
    ...over,
  }
}

function words(text: string | undefined, between: string): string[] | undefined {
  return text ? text.split(between).filter((word) => word !== '') : undefined
}

/** What the command line brought to this machine. */
function broughtRunsc(): string | undefined {
  return RUNSC_VERSIONS.map((version) => join(cache, `runsc-${version}`, 'runsc')).find(existsSync)
}

function rustTarget(): string {
  const architecture = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  return `${architecture}-unknown-linux-gnu`
}
