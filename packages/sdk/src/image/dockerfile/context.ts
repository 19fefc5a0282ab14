/** The files that `COPY` and `ADD` of a Dockerfile may take: a directory less what its `.dockerignore` leaves out. */
import { readFile, readlink } from 'node:fs/promises'
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

/** Links that one path leads through. */
const LINKS_MAX = 40

interface Listing {
  readonly sorted: readonly ListedFile[]
  readonly byName: ReadonlyMap<string, ListedFile>
}

export class Context {
  readonly directory: string
  readonly #dockerfile: string
  #files: Promise<Listing> | undefined

  constructor(directory: string, dockerfile: string) {
    this.directory = directory
    this.#dockerfile = dockerfile
  }

  /**
   * What a path or a pattern of an instruction names; empty when nothing. A link that is named is what it leads to, as for Docker; the
   * context is the root of all links.
   */
  async find(pattern: string): Promise<readonly Found[]> {
    const files = await this.#all()
    const cleaned = namesOf(pattern)
    const exact = await this.#at(files, cleaned)
    if (exact) return [exact]
    const glob = cleaned.join('/')
    if (!/[*?[]/.test(glob)) return []
    const matches = matcherOf(glob)
    const found: Found[] = []
    for (const name of files.byName.keys()) {
      const each = matches(name) ? await this.#at(files, name.split('/')) : undefined
      if (each) found.push(each)
    }
    return found
  }

  /** Undefined where nothing is, or a link leads to nothing of the context. */
  async #at({ sorted, byName }: Listing, names: readonly string[]): Promise<Found | undefined> {
    const real = await followed(byName, names)
    const file = real && byName.get(real)
    if (real === undefined || (real !== '' && !file)) return undefined
    const name = names.join('/')
    if (file && file.kind !== 'directory') {
      return { name, directory: false, files: [{ path: file.path, name: basename(name) }] }
    }
    const prefix = real === '' ? '' : `${real}/`
    const below = startingWith(prefix, sorted)
    const relative = below.map(({ path, name: own }) => ({ path, name: own.slice(prefix.length) }))
    return { name, directory: true, files: relative }
  }

  #all(): Promise<Listing> {
    this.#files ??= this.#list()
    return this.#files
  }

  async #list(): Promise<Listing> {
    const own = `${this.#dockerfile}.dockerignore`
    const text = (await textOf(own)) ?? (await textOf(join(this.directory, '.dockerignore'))) ?? ''
    const files = await filesBelow(this.directory, linesOfIgnore(text))
    return { sorted: files, byName: new Map(files.map((file) => [file.name, file])) }
  }
}

/** They stand side by side. */
function startingWith(prefix: string, sorted: readonly ListedFile[]): readonly ListedFile[] {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle]?.name ?? '') < prefix) low = middle + 1
    else high = middle
  }
  let end = low
  while (sorted[end]?.name.startsWith(prefix)) end += 1
  return sorted.slice(low, end)
}

/** The path without links; what is missing or ignored is no link. Undefined where links lead in circles. */
async function followed(
  files: ReadonlyMap<string, ListedFile>,
  names: readonly string[],
): Promise<string | undefined> {
  const left = [...names].reverse()
  let real: string[] = []
  for (let links = 0; left.length > 0; ) {
    const name = left.pop() ?? ''
    if (name === '' || name === '.') continue
    if (name === '..') {
      real.pop()
      continue
    }
    real.push(name)
    const file = files.get(real.join('/'))
    if (file?.kind !== 'link') continue
    links += 1
    if (links > LINKS_MAX) return undefined
    const target = await readlink(file.path)
    if (target.startsWith('/')) real = []
    else real.pop()
    left.push(...target.split('/').reverse())
  }
  return real.join('/')
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
