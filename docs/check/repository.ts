/** The repository as a set of files, for tests that read it as a whole. */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Without a slash at its end. */
export const top = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

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

/** A fenced block of a page. */
export interface CodeBlock {
  readonly page: string
  /** Of its first line, from 1. */
  readonly line: number
  /** What stands behind the opening fence: `ts`, `sh`. */
  readonly language: string
  readonly text: string
}

export async function codeBlocks(page: string): Promise<CodeBlock[]> {
  const blocks: CodeBlock[] = []
  let open: { language: string; line: number; lines: string[] } | undefined
  for (const [index, line] of (await textOf(page)).split('\n').entries()) {
    const fence = /^```(\w*)/.exec(line)
    if (open && fence) {
      blocks.push({ page, line: open.line, language: open.language, text: open.lines.join('\n') })
      open = undefined
    } else if (open) open.lines.push(line)
    else if (fence) open = { language: fence[1] ?? '', line: index + 2, lines: [] }
  }
  if (open) throw new Error(`${page}:${open.line} opens a block that nothing closes`)
  return blocks
}

export async function pages(): Promise<string[]> {
  return (await allFiles()).filter((path) => path.endsWith('.md'))
}
