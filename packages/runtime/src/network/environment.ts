import type { NetworkPolicy } from '@sandlot/protocol'
import { type AptSource, sourcesForSuite } from '../image/apt-sources.ts'
import { NETWORK_LIMITS } from './limits.ts'
import { allowsAnything, wantsPackages } from './policy.ts'

/** What commands under a policy are given, so that tools find the relay and the machine's mirrors. */
export interface NetworkEnvironment {
  readonly env: Readonly<Record<string, string>>
  /** To be in the world before its commands; on a file system that no snapshot and no layer keeps. */
  readonly files: readonly NetworkFile[]
}

export interface NetworkFile {
  readonly path: string
  readonly content: string
}

export interface PackageTools {
  /** Variables of pip and npm. */
  readonly env: Readonly<Record<string, string>>
  /** What the machine trusts, where it trusts more than others. */
  readonly certificates: string | undefined
  readonly apt: readonly AptSource[]
  /** Code name of the machine's own release. */
  readonly codename: string
}

/** A memory file system that each world has for itself. */
const DIRECTORY = '/dev/shm/.sandlot'
const CERTIFICATES = `${DIRECTORY}/certificates.pem`
const APT_CONFIGURATION = `${DIRECTORY}/apt.conf`
const APT_SOURCES = `${DIRECTORY}/apt/machine.sources`

export const NOTHING: NetworkEnvironment = { env: {}, files: [] }

/** `osRelease`: the text of the world's /etc/os-release, for the sources of its own suite. */
export function environmentFor(
  policy: NetworkPolicy,
  tools: PackageTools,
  osRelease: string,
): NetworkEnvironment {
  if (!allowsAnything(policy)) return NOTHING
  if (!wantsPackages(policy)) return withCertificates(tools.certificates)
  const { certificates, env } = tools
  const apt = aptConfiguration(tools, osRelease)
  return {
    env: {
      ...proxyVariables(),
      ...env,
      ...(certificates === undefined ? {} : certificateVariables()),
      ...(apt.length === 0 ? {} : { APT_CONFIG: APT_CONFIGURATION }),
    },
    files: [
      ...(certificates === undefined ? [] : [{ path: CERTIFICATES, content: certificates }]),
      ...apt,
    ],
  }
}

function withCertificates(certificates: string | undefined): NetworkEnvironment {
  if (certificates === undefined) return { env: proxyVariables(), files: [] }
  return {
    env: { ...proxyVariables(), ...certificateVariables() },
    files: [{ path: CERTIFICATES, content: certificates }],
  }
}

function proxyVariables(): Record<string, string> {
  const proxy = `http://127.0.0.1:${NETWORK_LIMITS.port}`
  // As HTTP also where SOCKS would do: many clients fail at once on a SOCKS proxy that they have no library for.
  const variables = {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    ALL_PROXY: proxy,
    NO_PROXY: 'localhost,127.0.0.1,::1',
  }
  const small = Object.entries(variables).map(([name, value]) => [name.toLowerCase(), value])
  return { ...variables, ...Object.fromEntries(small), NODE_USE_ENV_PROXY: '1' }
}

function certificateVariables(): Record<string, string> {
  const names = [
    ...['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'PIP_CERT'],
    ...['NODE_EXTRA_CA_CERTS', 'npm_config_cafile', 'GIT_SSL_CAINFO'],
  ]
  return Object.fromEntries(names.map((name) => [name, CERTIFICATES]))
}

/** The machine's own sources for the suite of the world, where both are Debian; else the image's own hold. */
function aptConfiguration(tools: PackageTools, osRelease: string): NetworkFile[] {
  const field = (name: string) =>
    new RegExp(`^${name}="?([^"\\n]*)`, 'm').exec(osRelease)?.[1] ?? ''
  const sources = field('ID') === 'debian' ? sourcesOf(tools, field('VERSION_CODENAME')) : undefined
  const lines = [
    ...(tools.certificates === undefined ? [] : [`Acquire::https::CaInfo "${CERTIFICATES}";`]),
    ...(sources === undefined
      ? []
      : ['Dir::Etc::sourcelist "/dev/null";', `Dir::Etc::sourceparts "${DIRECTORY}/apt";`]),
  ]
  if (lines.length === 0) return []
  return [
    { path: APT_CONFIGURATION, content: `${lines.join('\n')}\n` },
    ...(sources === undefined ? [] : [{ path: APT_SOURCES, content: sources }]),
  ]
}

function sourcesOf({ apt, codename }: PackageTools, suite: string): string | undefined {
  if (suite === '') return undefined
  try {
    return sourcesForSuite(apt.map(withoutPasswords), codename, suite)
  } catch {
    return undefined
  }
}

function withoutPasswords(source: AptSource): AptSource {
  return { ...source, uris: source.uris.map((uri) => uri.replace(/^([a-z+]+:\/\/)[^/@]*@/, '$1')) }
}
