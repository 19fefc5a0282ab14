import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { repository } from '../config.ts'
import { packagesAreThere } from './packages-there.ts'

const TOOL = { version: '1.0.0', integrity: 'sha512-aa' }
const NESTED = { version: '2.0.0', integrity: 'sha512-bb' }
const NAMED = {
  '': { name: 'the checkout itself' },
  'node_modules/tool': TOOL,
  'packages/part/node_modules/nested': NESTED,
  'node_modules/for-another-machine': { version: '1.0.0', optional: true },
}
const THERE = { 'node_modules/tool': TOOL, 'packages/part/node_modules/nested': NESTED }

async function checkout(path: string, there: object): Promise<string> {
  for (const each of Object.keys(THERE)) await mkdir(join(path, each), { recursive: true })
  await writeFile(join(path, 'package-lock.json'), JSON.stringify({ packages: NAMED }))
  const hidden = join(path, 'node_modules/.package-lock.json')
  await writeFile(hidden, JSON.stringify({ packages: there }))
  return path
}

test('all that the lockfile names is there, but for what another machine needs', async () => {
  await using directory = await temporaryDirectory()
  expect(packagesAreThere(await checkout(directory.path, THERE))).toBe(true)
})

test.each([
  ['is missing', { 'node_modules/tool': TOOL }],
  ['is of another version', { ...THERE, 'node_modules/tool': { ...TOOL, version: '1.0.1' } }],
  ['is of other content', { ...THERE, 'node_modules/tool': { ...TOOL, integrity: 'sha512-cc' } }],
])('one that %s is not', async (_, there) => {
  await using directory = await temporaryDirectory()
  expect(packagesAreThere(await checkout(directory.path, there))).toBe(false)
})

test('a directory that is gone counts, whatever was written down', async () => {
  await using directory = await temporaryDirectory()
  const path = await checkout(directory.path, THERE)
  await rm(join(path, 'packages/part'), { recursive: true })
  expect(packagesAreThere(path)).toBe(false)
})

test('this checkout has its own', () => {
  expect(packagesAreThere(repository)).toBe(true)
})
