/**
 * Control files are read and written in place, without the thread pool: they are the kernel's memory, an access takes
 * microseconds, and a checkout must not wait behind somebody's disk.
 */
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs'
import { mkdir, readdir, rmdir } from 'node:fs/promises'

/** What a hierarchy is reached by; it fails with the errors of the kernel. */
export interface ControlIo {
  read(path: string): string
  /** Of a file that is there. */
  write(path: string, text: string): void
  make(path: string): Promise<void>
  remove(path: string): Promise<void>
  /** Names of the groups in one. */
  directories(path: string): Promise<readonly string[]>
}

export const kernelIo: ControlIo = {
  read: (path) => readFileSync(path, 'utf8'),
  write: (path, text) => {
    // Never made: a kernel that lacks the file says so.
    const file = openSync(path, constants.O_WRONLY)
    try {
      writeSync(file, text)
    } finally {
      closeSync(file)
    }
  },
  make: async (path) => {
    await mkdir(path)
  },
  remove: (path) => rmdir(path),
  directories: async (path) => {
    const entries = await readdir(path, { withFileTypes: true })
    return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
  },
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
