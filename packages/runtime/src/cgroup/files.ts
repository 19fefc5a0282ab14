/**
 * Control files are read and written in place, without the thread pool: they are the kernel's memory, an access takes
 * microseconds, and a checkout must not wait behind somebody's disk.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { MemoryAbove } from './cgroups.ts'

const POLL_MS_FIRST = 1
const POLL_MS_MAX = 20

/** Content of a control file; undefined where it doesn't exist (or its group is just being removed). */
export async function readControl(path: string): Promise<string | undefined> {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENODEV', 'EOPNOTSUPP'].includes(codeOf(error))) return undefined
    throw error
  }
}

/** A single number in a file, `max` as infinity, 0 where there is none. */
export async function readNumber(path: string): Promise<number> {
  const text = (await readControl(path))?.trim()
  if (text === 'max') return Number.POSITIVE_INFINITY
  return Number(text ?? 0) || 0
}

/** One number of a file of `key value` lines, 0 where there is none. */
export async function readKeyed(path: string, key: string): Promise<number> {
  const text = (await readControl(path)) ?? ''
  const line = text.split('\n').find((each) => each.startsWith(`${key} `))
  return Number(line?.slice(key.length + 1) ?? 0) || 0
}

/** Of `memory.stat`: pages of files, which can be dropped or written out. Memory that is shared is none of them. */
export async function readCache(path: string, prefix = ''): Promise<number> {
  const active = readKeyed(path, `${prefix}active_file`)
  return (await active) + (await readKeyed(path, `${prefix}inactive_file`))
}

/** How a version calls what it says of the memory of a group with all below it. */
export interface MemoryNames {
  readonly limit: string
  readonly usage: string
  /** Before the keys of `memory.stat`. */
  readonly prefix: string
}

/** A limit so large is none: v1 has no word for that. */
const LIMITED_BELOW = 2 ** 60

export async function readMemoryAbove(
  directories: readonly string[],
  { limit, usage, prefix }: MemoryNames,
): Promise<MemoryAbove> {
  let tightest: MemoryAbove = { limitBytes: Infinity, availableBytes: Infinity }
  for (const directory of directories) {
    const limitBytes = await readNumber(join(directory, limit))
    if (limitBytes === 0 || limitBytes >= LIMITED_BELOW) continue
    const cacheBytes = await readCache(join(directory, 'memory.stat'), prefix)
    const usedBytes = Math.max(0, (await readNumber(join(directory, usage))) - cacheBytes)
    const availableBytes = Math.max(0, limitBytes - usedBytes)
    if (availableBytes < tightest.availableBytes) tightest = { limitBytes, availableBytes }
  }
  return tightest
}

export async function writeControl(path: string, value: string | number): Promise<void> {
  writeFileSync(path, String(value), { flag: 'w' })
}

/** Where a kernel may lack the file. */
export async function writeOptional(path: string, value: string | number): Promise<void> {
  try {
    writeFileSync(path, String(value), { flag: 'r+' })
  } catch (error) {
    if (!['ENOENT', 'EOPNOTSUPP', 'EINVAL', 'EACCES'].includes(codeOf(error))) throw error
  }
}

export async function readPids(path: string): Promise<readonly number[]> {
  const text = (await readControl(path)) ?? ''
  return text.split('\n').flatMap((line) => (line === '' ? [] : [Number(line)]))
}

export async function listDirectories(path: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true })
    return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

export async function makeParent(path: string): Promise<void> {
  await mkdir(path, { recursive: true })
}

/** True once the directory is not there; false while it is busy. */
export async function tryRemove(path: string): Promise<boolean> {
  try {
    await rmdir(path)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true
    if (['EBUSY', 'ENOTEMPTY'].includes(codeOf(error))) return false
    throw error
  }
}

/** Asks again and again, ever more rarely, until the answer is yes or the time is over. */
export async function poll(timeoutMs: number, ask: () => Promise<boolean>): Promise<boolean> {
  const end = performance.now() + timeoutMs
  for (let pause = POLL_MS_FIRST; ; pause = Math.min(pause * 2, POLL_MS_MAX)) {
    if (await ask()) return true
    if (performance.now() >= end) return false
    await delay(pause)
  }
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
