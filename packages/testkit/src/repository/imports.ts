import { dirname, join, normalize } from 'node:path'
import { allFiles, textOf } from './files.ts'
import { isTest } from './rules.ts'

/** `from './x.ts'`, `import('./x.ts')`, `new URL('./x.ts', import.meta.url)`, and a whole path in text. */
const REFERENCES = [
  /(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g,
  /new URL\(\s*[`']([^`']+)[`']\s*,\s*import\.meta\.url/g,
]

/** Source files of the packages that no other file of the repository names, by path from the top. */
export async function unusedSources(): Promise<string[]> {
  const files = await allFiles()
  const used = new Set<string>()
  for (const file of files.filter((path) => /(\.[tj]s|\.json|^sandlot)$/.test(path))) {
    const text = await textOf(file)
    for (const path of referencesOf(file, text)) used.add(path)
  }
  return files.filter((path) => isSource(path) && !used.has(path))
}

function referencesOf(file: string, text: string): string[] {
  const relative = REFERENCES.flatMap((pattern) => [...text.matchAll(pattern)])
  const inPackage = text.matchAll(/"(\.\/src\/[^"]+)"/g)
  const fromTop = text.matchAll(/\b(packages\/[\w./-]+\.ts)\b/g)
  return [
    ...[...relative, ...inPackage].map(([, path = '']) => normalize(join(dirname(file), path))),
    ...[...fromTop].map(([, path = '']) => path),
  ]
}

function isSource(path: string): boolean {
  return /^packages\/[^/]+\/src\/.*\.ts$/.test(path) && !isTest(path)
}
