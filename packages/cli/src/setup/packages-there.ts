/**
 * Run by the `sandlot` script before any package need be there: exits with 0 where the checkout's packages are installed already, by
 * whoever worked in it. Installing them again would take them away from programs that run.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { argv, exit } from 'node:process'

interface Lockfile {
  readonly packages?: Readonly<Record<string, LockedPackage>>
}

interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  /** Left out where it is for another machine. */
  readonly optional?: boolean
}

/** Whether each package of the lockfile is there, in that version, by what npm wrote down when it installed them. */
export function packagesAreThere(root: string): boolean {
  const wanted = readLockfile(join(root, 'package-lock.json'))
  const there = readLockfile(join(root, 'node_modules/.package-lock.json'))
  const named = Object.entries(wanted).filter(([path]) => path !== '')
  return named.every(([path, { version, integrity, optional }]) => {
    const found = there[path]
    if (found === undefined) return optional === true
    const isSame = found.version === version && found.integrity === integrity
    return isSame && existsSync(join(root, path))
  })
}

function readLockfile(path: string): Readonly<Record<string, LockedPackage>> {
  return (JSON.parse(readFileSync(path, 'utf8')) as Lockfile).packages ?? {}
}

if (import.meta.main) exit(packagesAreThere(argv[2] as string) ? 0 : 1)
