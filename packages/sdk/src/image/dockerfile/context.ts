/** The files that `COPY` and `ADD` of a Dockerfile may take: a directory less what its `.dockerignore` leaves out. */
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { LocalEntry } from '../../sandbox/local-tar.ts'
import { filesBelow, type ListedFile } from '../copied-files.ts'
import { linesOfIgnore, matcherOf } from '../ignore.ts'

export interface Found {
  /** Relative to the context. */
  readonly name: string
  readonly directory: boolean
  /** A file, or all that is in the directory, with names below it. */
  readonly files: readonly LocalEntry[]
}

export class Context {
  readonly directory: string
  readonly #dockerfile: string
  #files: Promise<readonly ListedFile[]> | undefined

  constructor(directory: string, dockerfile: string) {
    this.directory = directory
    this.#dockerfile = dockerfile
  }

  /** What a path or a pattern of an instruction names; empty when nothing. */
  async find(pattern: string): Promise<readonly Found[]> {
    const files = await this.#all()
    const cleaned = namesOf(pattern).join('/')
    if (cleaned === '') return [this.#found(files, '', true)]
    const exact = files.find(({ name }) => name === cleaned)
    if (exact) return [this.#found(files, exact.name, exact.directory)]
    if (!/[*?[]/.test(cleaned)) return []
    const matches = matcherOf(cleaned)
    return files
      .filter(({ name }) => matches(name))
      .map(({ name, directory }) => this.#found(files, name, directory))
  }

  #found(files: readonly ListedFile[], name: string, directory: boolean): Found {
    if (!directory) {
      return {
        name,
        directory,
        files: [{ path: join(this.directory, name), name: basename(name) }],
      }
    }
    const prefix = name === '' ? '' : `${name}/`
    const below = files.filter((file) => file.name.startsWith(prefix))
    return {
      name,
      directory,
      files: below.map((file) => ({ path: file.path, name: file.name.slice(prefix.length) })),
    }
  }

  #all(): Promise<readonly ListedFile[]> {
    this.#files ??= this.#list()
    return this.#files
  }

  async #list(): Promise<readonly ListedFile[]> {
    const own = `${this.#dockerfile}.dockerignore`
    const text = (await textOf(own)) ?? (await textOf(join(this.directory, '.dockerignore'))) ?? ''
    return await filesBelow(this.directory, linesOfIgnore(text))
  }
}

/** Where a Dockerfile's files come from when nothing is said. */
export function contextOf(dockerfile: string, context: string | undefined): Context {
  return new Context(context ?? dirname(dockerfile), dockerfile)
}

/** `..` stays within the context, as Docker has it. */
function namesOf(pattern: string): readonly string[] {
  const kept: string[] = []
  for (const name of pattern.split('/')) {
    if (name === '..') kept.pop()
    else if (name !== '' && name !== '.') kept.push(name)
  }
  return kept
}

async function textOf(path: string): Promise<string | undefined> {
  return await readFile(path, 'utf8').catch(() => undefined)
}
