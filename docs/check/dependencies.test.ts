import { allFiles, textOf } from '@sandlot/testkit/repository'
import { expect, test } from 'vitest'

const PAGE = 'docs/decisions/dependencies.md'

test('every dependency has a line that says what it saves', async () => {
  const files = await allFiles()
  const npm = await Promise.all(files.filter((path) => /package\.json$/.test(path)).map(npmNames))
  const cargo = await Promise.all(files.filter((path) => /Cargo\.toml$/.test(path)).map(crateNames))
  const names = new Set([...npm, ...cargo].flat())
  expect(names.size).toBeGreaterThan(10)
  const listed = namesOf(await textOf(PAGE))
  expect([...names].filter((name) => !listed.has(name))).toEqual([])
})

test('every dependency has an exact version', async () => {
  const manifests = (await allFiles()).filter((path) => /(package\.json|Cargo\.toml)$/.test(path))
  for (const path of manifests) {
    expect((await textOf(path)).match(/"[\^~>][\d.]+"/g) ?? [], path).toEqual([])
  }
})

async function npmNames(path: string): Promise<string[]> {
  const manifest = JSON.parse(await textOf(path)) as Record<string, Record<string, string>>
  const { dependencies, devDependencies, optionalDependencies } = manifest
  return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })
    .filter((name) => name !== 'sandlot' && !name.startsWith('@sandlot/'))
    .map((name) => name.replace(/^@types\/.*/, '@types/*'))
}

async function crateNames(path: string): Promise<string[]> {
  const sections = (await textOf(path)).matchAll(/^\[(?:\w+-)?dependencies\]\n((?:[^[\n].*\n?)*)/gm)
  return [...sections]
    .flatMap(([, body = '']) => [...body.matchAll(/^([\w-]+) *=/gm)])
    .map(([, name = '']) => name)
    .filter((name) => !name.startsWith('sandlot-'))
}

/** What stands in the first column of the table. */
function namesOf(page: string): Set<string> {
  const cells = [...page.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = '']) => cell)
  return new Set(cells.flatMap((cell) => cell.split(/,\s*/)).map((name) => name.trim()))
}
