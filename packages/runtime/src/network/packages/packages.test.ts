import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseTarget, type Target } from '../host.ts'
import { MachineNetwork } from '../machine.ts'
import type { PackageSettings } from './settings.ts'
import { upstreamProxy } from './upstream.ts'

const CERTIFICATE = (name: string) =>
  `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`

const SOURCES = `Types: deb
URIs: http://me:word@apt.corp:8081/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`

let place: Awaited<ReturnType<typeof temporaryDirectory>>
let root = ''

beforeEach(async () => {
  place = await temporaryDirectory()
  root = place.path
})
afterEach(async () => await place[Symbol.asyncDispose]())

/** A machine with these files below a directory of its own. */
async function machine(
  files: Record<string, string>,
  env: PackageSettings['env'] = {},
): Promise<MachineNetwork> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, path, '..'), { recursive: true })
    await writeFile(join(root, path), text.replaceAll('ROOT', root))
  }
  return new MachineNetwork({
    env,
    aptDirectory: join(root, 'apt'),
    osReleasePath: join(root, 'os-release'),
    pipFiles: [join(root, 'pip.conf'), join(root, 'own-pip.conf')],
    npmFiles: [join(root, 'npmrc')],
    certificatesPath: join(root, 'trusted.pem'),
  })
}

describe('the machine’s own mirrors', () => {
  test('come from the settings of apt, pip and npm', async () => {
    const network = await machine({
      'apt/sources.list.d/debian.sources': SOURCES,
      'pip.conf': '[global]\nindex-url = https://old.corp/simple\ncert = /ca.pem\n',
      'own-pip.conf':
        '[install]\nindex_url: https://me:word@pip.corp/simple\nextra-index-url =\n    https://more.corp:8443/simple\n    http://last.corp/\n[other]\nindex-url = https://no.corp\n',
      npmrc:
        'registry="https://npm.corp/"\n@team:registry=http://team.corp:4873/\n//npm.corp/:_authToken=x\n',
    })
    const { hosts, env, certificatePaths } = await network.packageMirrors()
    expect(hosts.map(({ host, port }) => `${host}:${port}`)).toEqual([
      ...['apt.corp:8081', 'pip.corp:443', 'more.corp:8443', 'last.corp:80'],
      ...['npm.corp:443', 'team.corp:4873'],
    ])
    expect(env).toEqual({
      PIP_INDEX_URL: 'https://pip.corp/simple',
      PIP_EXTRA_INDEX_URL: 'https://more.corp:8443/simple http://last.corp/',
      npm_config_registry: 'https://npm.corp/',
    })
    expect(certificatePaths).toEqual(['/ca.pem'])
  })

  test('the environment holds before files', async () => {
    const env = { PIP_INDEX_URL: 'http://10.0.0.1:3141/', npm_config_registry: 'http://n.corp/' }
    const set = await (await machine({ npmrc: 'registry=http://old.corp' }, env)).packageMirrors()
    expect(set.hosts).toEqual([
      { host: '10.0.0.1', port: 3141 },
      { host: 'n.corp', port: 80 },
    ])
  })

  test('are the public ones where nobody says anything', async () => {
    const unset = await (await machine({})).packageMirrors()
    expect(unset.hosts.map(({ port }) => port)).toEqual([443, 443, 443])
    expect(unset.env).toEqual({})
  })

  test('are what the policy packages allows', async () => {
    const network = await machine({ 'pip.conf': '[global]\nindex-url=https://pip.corp/simple\n' })
    const compiled = await network.compile('packages')
    expect(compiled.decide(parseTarget('pip.corp:443') as Target)?.reach).toBe('machine')
    expect(compiled.decide(parseTarget('pip.corp:80') as Target)).toBeUndefined()
  })
})

describe('what commands are given', () => {
  const DEBIAN = 'ID=debian\nVERSION_CODENAME=trixie\n'
  const settings = {
    'apt/sources.list.d/debian.sources': SOURCES,
    'os-release': 'ID=debian\nVERSION_CODENAME=bookworm\n',
    'trusted.pem': CERTIFICATE('public') + CERTIFICATE('shared'),
    'corp.pem': CERTIFICATE('corp') + CERTIFICATE('shared'),
    'pip.conf': '[global]\ncert = ROOT/corp.pem\n',
  }

  test('nothing where nothing is allowed', async () => {
    const network = await machine(settings)
    expect(await network.environment('none')).toEqual({ env: {}, files: [] })
    expect(await network.environment({ allow: [] })).toEqual({ env: {}, files: [] })
  })

  test('the proxy where hosts are allowed', async () => {
    const { env, files } = await (await machine(settings)).environment({ allow: ['a.example'] })
    expect(env).toMatchObject({
      HTTPS_PROXY: 'http://127.0.0.1:61080',
      http_proxy: 'http://127.0.0.1:61080',
      no_proxy: 'localhost,127.0.0.1,::1',
    })
    expect(env).not.toHaveProperty('PIP_CERT')
    expect(files).toEqual([])
  })

  test('certificates and sources for the world’s own suite where packages are', async () => {
    const { env, files } = await (await machine(settings)).environment('packages', DEBIAN)
    expect(env).toMatchObject({
      PIP_CERT: '/dev/shm/.sandlot/certificates.pem',
      APT_CONFIG: '/dev/shm/.sandlot/apt.conf',
    })
    const text = Object.fromEntries(files.map(({ path, content }) => [path, content]))
    expect(text['/dev/shm/.sandlot/certificates.pem']).toBe(
      ['public', 'shared', 'corp'].map(CERTIFICATE).join(''),
    )
    expect(text['/dev/shm/.sandlot/apt.conf']).toContain(
      'Dir::Etc::sourceparts "/dev/shm/.sandlot/apt";',
    )
    const sources = text['/dev/shm/.sandlot/apt/machine.sources']
    expect(sources).toContain('URIs: http://apt.corp:8081/debian\nSuites: trixie trixie-updates')
  })

  test('another distribution keeps its own sources', async () => {
    const { files } = await (await machine(settings)).environment('packages', 'ID=alpine\n')
    expect(files.map(({ path }) => path)).toEqual([
      '/dev/shm/.sandlot/certificates.pem',
      '/dev/shm/.sandlot/apt.conf',
    ])
  })
})

test.each([
  [{}, 'a.example:443', undefined],
  [{ HTTPS_PROXY: 'http://proxy:3128' }, 'a.example:443', 'http://proxy:3128/'],
  [{ https_proxy: 'proxy:3128' }, 'a.example:8443', 'http://proxy:3128/'],
  [{ http_proxy: 'http://p:1' }, 'a.example:80', 'http://p:1/'],
  [{ http_proxy: 'http://p:1' }, 'a.example:443', undefined],
  [{ all_proxy: 'socks5://p:1' }, 'a.example:443', undefined],
  [{ all_proxy: 'http://p:1', no_proxy: 'b.example, .example' }, 'a.example:443', undefined],
  [{ all_proxy: 'http://p:1', NO_PROXY: 'a.example:80' }, 'a.example:443', 'http://p:1/'],
  [{ all_proxy: 'http://p:1', NO_PROXY: '*' }, 'a.example:443', undefined],
  [{ all_proxy: 'http://p:1', NO_PROXY: 'a.exam' }, 'a.example:443', 'http://p:1/'],
])('with %o %s is reached by %s', (env, target, proxy) => {
  expect(upstreamProxy(env, parseTarget(target) as Target)?.href).toBe(proxy)
})
