/** The repository as a set of files, for tests that read it as a whole. */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Without a slash at its end. */
export const top = fileURLToPath(new URL('../../../..', import.meta.url)).replace(/\/$/, '')

/** What is made or brought, and is no part of the repository. */
const FOREIGN = new Set(['.git', 'node_modules', 'target', 'dist', '.bench-tmp'])

/** Paths of all files from the top, sorted. */
export async function allFiles(directory = top): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (FOREIGN.has(entry.name)) continue
    const path = join(directory, entry.name)
    if (entry.isDirectory()) found.push(...(await allFiles(path)))
    else if (entry.isFile()) found.push(relative(top, path))
  }
  return found.sort()
}

export async function textOf(path: string): Promise<string> {
  return await readFile(join(top, path), 'utf8')
}

/** Every page of Markdown. */
export async function pages(): Promise<string[]> {
  return (await allFiles()).filter((path) => path.endsWith('.md'))
}
