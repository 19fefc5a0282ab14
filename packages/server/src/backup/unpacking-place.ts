/** Where a backup is unpacked before it takes its place: beside the data directory, locked for as long as somebody does. */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isEngineError, lockDirectory } from '@sandlot/engine'

export interface UnpackingPlace extends AsyncDisposable {
  /** The directory that becomes the data directory, by a rename. */
  readonly data: string
}

/** A new one. Disposed, it is gone with what is still in it. */
export async function openPlace(dataDirectory: string): Promise<UnpackingPlace> {
  const place = await mkdtemp(prefixOf(dataDirectory))
  const lock = lockDirectory(place)
  const data = join(place, 'data')
  await mkdir(data, { mode: 0o700 })
  return {
    data,
    async [Symbol.asyncDispose]() {
      // What can't be removed now, the next restore removes.
      await rm(place, { recursive: true, force: true }).catch(() => {})
      lock[Symbol.dispose]()
    },
  }
}

/**
 * Removes those of restores that were killed, and returns their paths. The kernel frees the lock of a process whatever way it ends, so
 * one that can be locked is nobody's; one of a restore that is under way stays. What can't be removed is left.
 */
export async function removeUnfinished(dataDirectory: string): Promise<string[]> {
  const directory = dirname(dataDirectory)
  const prefix = basename(prefixOf(dataDirectory))
  const names = await readdir(directory).catch(() => [])
  const removed: string[] = []
  for (const name of names) {
    if (!name.startsWith(prefix)) continue
    const place = join(directory, name)
    try {
      using _lock = lockDirectory(place)
      await rm(place, { recursive: true, force: true })
      removed.push(place)
    } catch (error) {
      if (!isEngineError(error, 'directory_locked') && !isOfTheSystem(error)) throw error
    }
  }
  return removed
}

function prefixOf(dataDirectory: string): string {
  return `${dataDirectory}.restoring-`
}

/** Of a path that is no directory, or may not be touched. */
function isOfTheSystem(error: unknown): boolean {
  const { code = '' } = error as { readonly code?: string }
  return /^E[A-Z]+$|^ERR_SQLITE/.test(code)
}
