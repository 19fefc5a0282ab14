/** Files of a task folder: texts, and what is brought into a sandbox. */
import { readFile, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { LIMITS, SandlotError } from '@sandlot/protocol'
import { filesBelow } from '../image/copied-files.ts'
import { localFailure } from '../sandbox/local-failure.ts'
import type { Problems } from './problems.ts'
import type { HarborFile } from './task.ts'

const TEXT_BYTES_MAX = 2 ** 20

export class TaskFolder {
  readonly directory: string
  readonly #problems: Problems

  constructor(directory: string, problems: Problems) {
    this.directory = directory
    this.#problems = problems
  }

  async has(name: string): Promise<boolean> {
    return (await this.#kindOf(name)) === 'file'
  }

  async hasFolder(name: string): Promise<boolean> {
    return (await this.#kindOf(name)) === 'directory'
  }

  /** A text file; undefined where something is wrong with it. A link is the file of the task that it leads to. */
  async text(name: string): Promise<string | undefined> {
    const path = join(this.directory, name)
    try {
      const found = await stat(path)
      if (!found.isFile()) return this.#wrong(name, 'is no file')
      const problem = await problemOf(path, await realpath(this.directory))
      if (problem !== undefined) return this.#wrong(name, problem)
      if (found.size > TEXT_BYTES_MAX) return this.#wrong(name, 'is longer than 1 MiB')
      return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path))
    } catch (error) {
      if (error instanceof TypeError) return this.#wrong(name, 'is not UTF-8')
      return this.#wrong(name, wordsOf(error, path))
    }
  }

  /** All files below a folder, which need not be there. A link is the file of the task that it leads to. */
  async files(folder: string): Promise<readonly HarborFile[]> {
    if (!(await this.hasFolder(folder))) return []
    const root = join(this.directory, folder)
    const top = await realpath(this.directory)
    const found: HarborFile[] = []
    for (const { name, path, kind } of await filesBelow(root)) {
      if (kind === 'directory') continue
      const problem = await problemOf(path, top)
      if (problem !== undefined) this.#wrong(`${folder}/${name}`, problem)
      else found.push({ name, path })
    }
    if (found.length > LIMITS.gradeFiles) {
      this.#wrong(
        folder,
        `has more than ${LIMITS.gradeFiles} files: pack them into one, and unpack it in the script`,
      )
    }
    return found
  }

  /** Whether it is the task's own, and no link to elsewhere: what is wrong otherwise is told. */
  async isOwn(name: string): Promise<boolean> {
    const top = await realpath(this.directory)
    const real = await realpath(join(this.directory, name)).catch(() => top)
    if (real === top || real.startsWith(`${top}${sep}`)) return true
    this.#wrong(name, 'is a link out of the task folder')
    return false
  }

  async #kindOf(name: string): Promise<'file' | 'directory' | undefined> {
    const found = await stat(join(this.directory, name)).catch(() => undefined)
    if (found?.isFile()) return 'file'
    return found?.isDirectory() ? 'directory' : undefined
  }

  #wrong(name: string, problem: string): undefined {
    this.#problems.add(name, problem)
  }
}

async function problemOf(path: string, top: string): Promise<string | undefined> {
  const real = await realpath(path).catch(() => undefined)
  if (real === undefined) return 'is a link that leads nowhere'
  if (!real.startsWith(`${top}${sep}`)) return 'is a link out of the task folder'
  return (await stat(real)).isFile()
    ? undefined
    : 'is neither a file nor a directory, nor a link to a file'
}

function wordsOf(error: unknown, path: string): string {
  const failure = localFailure(error, 'can not be read')
  if (failure instanceof SandlotError) return failure.message
  throw new Error(`cannot read ${path}`, { cause: error })
}
