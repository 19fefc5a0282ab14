import { type AptSource, readAptSources } from '../../image/apt-sources.ts'
import type { MirrorHost } from '../policy.ts'
import { parseIni, parseNpmrc, textOf } from './machine-files.ts'
import type { PackageSettings } from './settings.ts'

/** What pip and npm take where nobody says otherwise. */
const PIP_INDEX = 'https://pypi.org/simple'
/** Where that index says that the files are. */
const PIP_FILES = 'https://files.pythonhosted.org/'
const NPM_REGISTRY = 'https://registry.npmjs.org/'

/** Where this machine takes packages from, and how its tools are told so. */
export interface PackageMirrors {
  readonly hosts: readonly MirrorHost[]
  /** Variables for pip and npm, without passwords: nothing inside a sandbox is to know one. */
  readonly env: Readonly<Record<string, string>>
  /** Files with certificates that its settings name. */
  readonly certificatePaths: readonly string[]
  readonly apt: readonly AptSource[]
}

/** Reads the machine's settings for apt, pip and npm. */
export async function readPackageMirrors(settings: PackageSettings): Promise<PackageMirrors> {
  const [apt, pip, npm] = await Promise.all([
    readAptSources(settings.aptDirectory),
    readPip(settings),
    readNpm(settings),
  ])
  const urls = [...apt.flatMap(({ uris }) => uris), ...pip.urls, ...npm.urls]
  const hosts = new Map(urls.flatMap(hostOf).map((host) => [`${host.host} ${host.port}`, host]))
  return {
    hosts: [...hosts.values()],
    env: { ...pip.env, ...npm.env },
    certificatePaths: [
      ...new Set([...pip.certificates, ...npm.certificates, ...ofEnvironment(settings)]),
    ],
    apt,
  }
}

interface ToolSettings {
  readonly urls: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly certificates: readonly string[]
}

async function readPip({ env, pipFiles }: PackageSettings): Promise<ToolSettings> {
  const found = new Map<string, string>()
  for (const path of pipFiles) {
    for (const [key, value] of parseIni(await textOf(path), ['global', 'install'])) {
      found.set(key.replaceAll('_', '-'), value)
    }
  }
  const setting = (key: string) =>
    env[`PIP_${key.toUpperCase().replaceAll('-', '_')}`] || found.get(key) || ''
  const index = setting('index-url')
  const extra = words(setting('extra-index-url'))
  const trusted = words(setting('trusted-host'))
  const cert = setting('cert')
  return {
    urls: [...(index === '' ? [PIP_INDEX, PIP_FILES] : [index]), ...extra],
    env: {
      ...(index === '' ? {} : { PIP_INDEX_URL: withoutPassword(index) }),
      ...(extra.length === 0 ? {} : { PIP_EXTRA_INDEX_URL: extra.map(withoutPassword).join(' ') }),
      ...(trusted.length === 0 ? {} : { PIP_TRUSTED_HOST: trusted.join(' ') }),
    },
    certificates: cert === '' ? [] : [cert],
  }
}

async function readNpm({ env, npmFiles }: PackageSettings): Promise<ToolSettings> {
  const found = new Map<string, string>()
  for (const path of npmFiles) {
    for (const [key, value] of parseNpmrc(await textOf(path), env)) found.set(key, value)
  }
  const setting = (key: string) =>
    env[`npm_config_${key}`] || env[`NPM_CONFIG_${key.toUpperCase()}`] || found.get(key) || ''
  const registry = setting('registry')
  const scoped = [...found].filter(([key]) => /^@[^:]+:registry$/.test(key))
  const cafile = setting('cafile')
  return {
    urls: [registry || NPM_REGISTRY, ...scoped.map(([, url]) => url)],
    env: registry === '' ? {} : { npm_config_registry: withoutPassword(registry) },
    certificates: cafile === '' ? [] : [cafile],
  }
}

function ofEnvironment({ env }: PackageSettings): string[] {
  const names = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS']
  return names.flatMap((name) => env[name] || [])
}

function hostOf(text: string): MirrorHost[] {
  if (!URL.canParse(text)) return []
  const { protocol, hostname, port } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:') return []
  return [{ host: hostname, port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port) }]
}

function withoutPassword(text: string): string {
  if (!URL.canParse(text)) return text
  const url = new URL(text)
  if (url.username === '' && url.password === '') return text
  url.username = ''
  url.password = ''
  return url.href
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}
