import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { parseOneLine, parseStanzas, readAptSources, sourcesForSuite } from './apt-sources.ts'

const oneLine = `
# deb http://off.example/debian bookworm main
deb [signed-by=/k.gpg arch=amd64,arm64] http://mirror.example/debian bookworm main contrib # note
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/security bookworm-security main
deb http://vendor.example/node nodistro main
deb http://vendor.example/apt cloud-sdk-bookworm main
`

const stanzas = `# first
Types: deb deb-src
URIs: http://mirror.example/debian
  http://second.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main
`

test('one-line sources take the machine’s own suites over to another', () => {
  expect(sourcesForSuite(parseOneLine(oneLine), 'bookworm', 'trixie')).toBe(
    [
      'Types: deb',
      'URIs: http://mirror.example/debian',
      'Suites: trixie',
      'Components: main contrib',
      'Signed-By: /k.gpg',
      '',
      'Types: deb',
      'URIs: http://mirror.example/security',
      'Suites: trixie-security',
      'Components: main',
      '',
    ].join('\n'),
  )
})

test('deb822 sources keep keys inside them, and leave out what is off', () => {
  expect(sourcesForSuite(parseStanzas(stanzas), 'bookworm', 'bookworm')).toBe(
    [
      'Types: deb',
      'URIs: http://mirror.example/debian http://second.example/debian',
      'Suites: bookworm bookworm-updates',
      'Components: main',
      'Signed-By: -----BEGIN PGP PUBLIC KEY BLOCK-----',
      ' .',
      ' abc',
      '',
    ].join('\n'),
  )
})

test('rolling suites have no updates of their own', () => {
  const text = sourcesForSuite(parseStanzas(stanzas), 'bookworm', 'sid')
  expect(text).toContain('Suites: sid\n')
})

test('a machine that says stable means its own release', () => {
  const sources = parseOneLine('deb http://mirror.example/debian stable-updates main')
  expect(sourcesForSuite(sources, 'bookworm', 'bookworm')).toContain('Suites: bookworm-updates\n')
})

test('a machine without Debian sources says so', () => {
  const sources = parseOneLine('deb http://mirror.example/ubuntu noble main')
  expect(() => sourcesForSuite(sources, 'bookworm', 'bookworm')).toThrow(
    expect.objectContaining({ code: 'image_build_failed' }),
  )
})

test('all files of the apt directory are read, disabled ones not', async () => {
  await using directory = await temporaryDirectory()
  const parts = join(directory.path, 'sources.list.d')
  await mkdir(parts)
  await writeFile(join(directory.path, 'sources.list'), 'deb http://one.example/ bookworm main\n')
  await writeFile(join(parts, 'b.list'), 'deb http://two.example/ bookworm main\n')
  await writeFile(join(parts, 'c.sources'), stanzas)
  await writeFile(join(parts, 'd.sources.disabled'), stanzas.replaceAll('mirror', 'wrong'))
  const found = await readAptSources(directory.path)
  expect(found.map((source) => source.uris[0])).toEqual([
    'http://one.example/',
    'http://two.example/',
    'http://mirror.example/debian',
  ])
})

test('a missing apt directory has no sources', async () => {
  expect(await readAptSources('/nonexistent')).toEqual([])
})
