/** What this daemon's own Node.js needs to run elsewhere, from its file and the libraries that it loads here. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { run } from '../../process/run.ts'
import { ImageError } from '../image-error.ts'

export interface Library {
  /** As programs ask for it: `libstdc++.so.6`. */
  readonly name: string
  readonly path: string
}

export interface NodeExecutable {
  readonly path: string
  /** Changes with the file or one of its libraries. */
  readonly key: string
  /** The program that loads it, by the path that is written in it. */
  readonly loader: string
  /** Part of glibc: they belong to one another, and to the loader. */
  readonly system: readonly Library[]
  /** Others, which an image may lack. */
  readonly others: readonly Library[]
  /** The oldest glibc with which all of it runs: `[2, 28]`. */
  readonly glibc: Version
}

export type Version = readonly [number, number]

/** Libraries of glibc itself. */
const SYSTEM = /^(libc|libm|libdl|libpthread|librt|libresolv|libutil|libmvec)\.so\./
/** Those of glibc that are loaded by name when something is looked up. */
const LOADED_LATER = ['libresolv.so.2', 'libnss_dns.so.2', 'libnss_files.so.2']

export async function nodeExecutable(path: string, signal: AbortSignal): Promise<NodeExecutable> {
  const listed = await run('ldd', [path], { timeoutMs: 10_000, signal })
  const { loader, libraries } = parseLdd(listed.stdout)
  if (loader === undefined || !libraries.some(({ name }) => name === 'libc.so.6')) {
    throw new ImageError(
      'image_build_failed',
      `${path} is no program of glibc that sandboxes could run.`,
      {
        hint: 'Run the daemon by a Node.js of nodejs.org, or of a distribution with glibc.',
      },
    )
  }
  const system = libraries.filter(({ name }) => SYSTEM.test(name))
  const others = libraries.filter(({ name }) => !SYSTEM.test(name))
  const directory = dirname(system.find(({ name }) => name === 'libc.so.6')?.path ?? '/lib')
  for (const name of LOADED_LATER) {
    const library = { name, path: join(directory, name) }
    const isThere = await stat(library.path).catch(() => undefined)
    if (isThere && !system.some((each) => each.name === name)) system.push(library)
  }
  const files = [path, loader, ...[...system, ...others].map((each) => each.path)]
  const own = [path, ...others.map((each) => each.path)]
  let glibc: Version = [2, 0]
  for (const each of own) glibc = later(glibc, await glibcWanted(each, signal))
  return { path, key: await keyOf(files), loader, system, others, glibc }
}

/** `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)`, and the loader without an arrow. */
export function parseLdd(text: string): {
  readonly loader: string | undefined
  readonly libraries: readonly Library[]
} {
  const libraries: Library[] = []
  let loader: string | undefined
  for (const line of text.split('\n')) {
    const [, name, path] = /^\s*(\S+) => (\/\S+) \(0x/.exec(line) ?? []
    if (name !== undefined && path !== undefined) libraries.push({ name: basename(name), path })
    else loader ??= /^\s*(\/\S*\/ld[^/\s]*) \(0x/.exec(line)?.[1]
  }
  return { loader, libraries }
}

export function isOlder(version: Version, than: Version): boolean {
  return version[0] < than[0] || (version[0] === than[0] && version[1] < than[1])
}

function later(a: Version, b: Version): Version {
  return isOlder(a, b) ? b : a
}

/** Between two pieces no name is cut that is shorter than this. */
const OVERLAP = 64

/** The newest version of glibc that symbols of a file are bound to. */
async function glibcWanted(path: string, signal: AbortSignal): Promise<Version> {
  let found: Version = [2, 0]
  let rest = ''
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20, signal })) {
    const text = rest + (chunk as Buffer).toString('latin1')
    for (const [, minor] of text.matchAll(/\0GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)/g)) {
      found = later(found, [2, Number(minor)])
    }
    rest = text.slice(-OVERLAP)
  }
  return found
}

async function keyOf(paths: readonly string[]): Promise<string> {
  const facts = []
  for (const path of paths) {
    const { size, mtimeMs } = await stat(path)
    facts.push([path, await realpath(path), size, mtimeMs])
  }
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex')
}
