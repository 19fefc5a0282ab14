import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { sandboxesDirectory, stateLock } from '../gvisor/paths.ts'
import { cgroupParents } from './cgroup-leaves.ts'
import { listProcesses } from './process-table.ts'

/**
 * State directories of all drivers of which anything is on the machine, by all that may name one: folders where daemons keep them, locks
 * that are held, commands of processes, parents of cgroups. Of the last the folder is gone; a place below `/run` stands for it.
 */
export function allStateDirectories(held: ReadonlyMap<string, number>): readonly string[] {
  const known = new Set([...stateDirectoriesIn('/run'), ...lockedDirectories(held)])
  for (const { command } of listProcesses()) {
    const [, directory] =
      /(\/[^\s=]*\/sandlot-[^/\s]+)\/b\/[a-z0-9]{16}(\/|\s|$)/.exec(command) ?? []
    if (directory !== undefined && command.includes('runsc')) known.add(directory)
  }
  const names = new Set([...known].map((directory) => basename(directory)))
  for (const parent of cgroupParents()) {
    if (!names.has(parent)) known.add(join('/run', parent))
  }
  return [...known].sort()
}

/** In a run directory, or in one of those below it. */
export function stateDirectoriesIn(directory: string): readonly string[] {
  const own = foldersIn(directory).filter((name) => name.startsWith('sandlot'))
  return own.flatMap((name) => {
    const path = join(directory, name)
    const below = foldersIn(path).filter((each) => each.startsWith('sandlot-'))
    return [...(isState(path) ? [path] : []), ...below.map((each) => join(path, each))]
  })
}

function lockedDirectories(held: ReadonlyMap<string, number>): readonly string[] {
  const directories = [...held.keys()].map(dirname).filter((path) => held.has(stateLock(path)))
  return directories.filter((path) => basename(path).startsWith('sandlot-'))
}

function isState(path: string): boolean {
  return existsSync(sandboxesDirectory(path)) || existsSync(stateLock(path))
}

function foldersIn(directory: string): readonly string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true })
    return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
  } catch {
    return []
  }
}
