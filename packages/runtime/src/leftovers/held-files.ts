import { readdirSync, readlinkSync } from 'node:fs'
import { processIds } from './process-table.ts'

/**
 * Lock files that living processes have open, and who has them. Whoever holds a lock has its file open, so a lock that stands here is
 * the sign of a living owner, and looking takes no lock away from anybody. Needs the right to look into all processes.
 */
export function heldLocks(): ReadonlyMap<string, number> {
  const held = new Map<string, number>()
  for (const pid of processIds()) {
    for (const path of openFiles(pid)) if (isLock(path)) held.set(path, pid)
  }
  return held
}

function isLock(path: string): boolean {
  return path.endsWith('/lock') || path.endsWith('/lock.db') || path.includes('/locks/')
}

function openFiles(pid: number): readonly string[] {
  const directory = `/proc/${pid}/fd`
  try {
    return readdirSync(directory).flatMap((name) => targetOf(`${directory}/${name}`))
  } catch {
    return []
  }
}

/** Of a file that was deleted the kernel says so behind its path; whoever holds it lives all the same. */
function targetOf(link: string): readonly string[] {
  try {
    return [readlinkSync(link).replace(/ \(deleted\)$/, '')]
  } catch {
    return []
  }
}
