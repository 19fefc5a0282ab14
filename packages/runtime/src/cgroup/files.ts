import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { MemoryAbove } from './cgroups.ts'
import { type ControlIo, codeOf, kernelIo } from './io.ts'

const POLL_MS_FIRST = 1
const POLL_MS_MAX = 20
/** A limit so large is none: v1 has no word for that. */
const LIMITED_BELOW = 2 ** 60

/** How a version calls what it says of the memory of a group with all below it. */
export interface MemoryNames {
  readonly limit: string
  readonly usage: string
  /** Before the keys of `memory.stat`. */
  readonly prefix: string
}

/** Control files of groups, as texts and numbers. */
export class ControlFiles {
  readonly #io: ControlIo

  constructor(io: ControlIo = kernelIo) {
    this.#io = io
  }

  /** Content of a control file; undefined where it doesn't exist (or its group is just being removed). */
  read(path: string): string | undefined {
    try {
      return this.#io.read(path)
    } catch (error) {
      if (['ENOENT', 'ENODEV', 'EOPNOTSUPP'].includes(codeOf(error))) return undefined
      throw error
    }
  }

  /** A single number in a file, `max` as infinity, 0 where there is none. */
  number(path: string): number {
    const text = this.read(path)?.trim()
    if (text === 'max') return Number.POSITIVE_INFINITY
    return Number(text ?? 0) || 0
  }

  /** One number of a file of `key value` lines, 0 where there is none. */
  keyed(path: string, key: string): number {
    const text = this.read(path) ?? ''
    const line = text.split('\n').find((each) => each.startsWith(`${key} `))
    return Number(line?.slice(key.length + 1) ?? 0) || 0
  }

  /** What a group is charged for, without pages of files, which can be dropped or written out. Memory that is shared is none of them. */
  memory(directory: string, { usage, prefix }: Omit<MemoryNames, 'limit'>): number {
    const stat = join(directory, 'memory.stat')
    const cacheBytes =
      this.keyed(stat, `${prefix}active_file`) + this.keyed(stat, `${prefix}inactive_file`)
    return Math.max(0, this.number(join(directory, usage)) - cacheBytes)
  }

  memoryAbove(directories: readonly string[], names: MemoryNames): MemoryAbove {
    let tightest: MemoryAbove = {
      limitBytes: Number.POSITIVE_INFINITY,
      availableBytes: Number.POSITIVE_INFINITY,
    }
    for (const directory of directories) {
      const limitBytes = this.number(join(directory, names.limit))
      if (limitBytes === 0 || limitBytes >= LIMITED_BELOW) continue
      const availableBytes = Math.max(0, limitBytes - this.memory(directory, names))
      if (availableBytes < tightest.availableBytes) tightest = { limitBytes, availableBytes }
    }
    return tightest
  }

  pids(path: string): readonly number[] {
    const text = this.read(path) ?? ''
    return text.split('\n').flatMap((line) => (line === '' ? [] : [Number(line)]))
  }

  write(path: string, value: string | number): void {
    this.#io.write(path, String(value))
  }

  /** Where a kernel may lack the file. */
  writeOptional(path: string, value: string | number): void {
    try {
      this.write(path, value)
    } catch (error) {
      if (!['ENOENT', 'EOPNOTSUPP', 'EINVAL', 'EACCES'].includes(codeOf(error))) throw error
    }
  }

  /** False where there is no such file. */
  writeIfThere(path: string, value: string | number): boolean {
    try {
      this.write(path, value)
      return true
    } catch (error) {
      if (['ENOENT', 'ENODEV'].includes(codeOf(error))) return false
      throw error
    }
  }

  /** Fails where it exists. */
  async make(path: string): Promise<void> {
    await this.#io.make(path)
  }

  async makeUnlessThere(path: string): Promise<void> {
    try {
      await this.#io.make(path)
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
  }

  async directories(path: string): Promise<readonly string[]> {
    try {
      return await this.#io.directories(path)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return []
      throw error
    }
  }

  /** True once the directory is not there; false while it is busy. */
  async tryRemove(path: string): Promise<boolean> {
    try {
      await this.#io.remove(path)
      return true
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return true
      if (['EBUSY', 'ENOTEMPTY'].includes(codeOf(error))) return false
      throw error
    }
  }
}

/** Asks again and again, ever more rarely, until the answer is yes or the time is over. */
export async function poll(
  timeoutMs: number,
  ask: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const end = performance.now() + timeoutMs
  for (let pause = POLL_MS_FIRST; ; pause = Math.min(pause * 2, POLL_MS_MAX)) {
    if (await ask()) return true
    if (performance.now() >= end) return false
    await delay(pause)
  }
}
