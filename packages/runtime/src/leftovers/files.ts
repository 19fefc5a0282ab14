import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isHostId, sandboxesDirectory } from '../gvisor/paths.ts'
import { run } from '../process/run.ts'
import type { Leftover, LeftoverKind, LeftoverScope } from './leftover.ts'

/** State, FIFOs, sockets and logs of sandboxes. */
export function findDirectories({ stateDirectory }: LeftoverScope): Promise<readonly Leftover[]> {
  return entriesOf(sandboxesDirectory(stateDirectory), 'directory')
}

/** Names of files on the disk; those of a sandbox that runs have none. */
export async function findDiskNames({
  dataDirectory,
}: LeftoverScope): Promise<readonly Leftover[]> {
  if (dataDirectory === undefined) return []
  return entriesOf(join(dataDirectory, 'disks'), 'disk')
}

/** The runtime makes none on the host; one that is there all the same keeps a directory from being removed. */
export async function findMounts({ stateDirectory }: LeftoverScope): Promise<readonly Leftover[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '')
  const points = text.split('\n').flatMap((line) => {
    const point = unescaped(line.split(' ')[4] ?? '')
    return point === stateDirectory || point.startsWith(`${stateDirectory}/`) ? [point] : []
  })
  // The youngest lies on top.
  return points.reverse().map((point) => ({
    kind: 'mount',
    what: point,
    ...hostIdOf(point.slice(sandboxesDirectory(stateDirectory).length + 1).split('/')[0]),
    remove: () => unmount(point),
  }))
}

/** Everything in a folder, as one thing each. */
export async function entriesOf(
  directory: string,
  kind: LeftoverKind,
): Promise<readonly Leftover[]> {
  const names = await readdir(directory).catch(() => [])
  return names.map((name) => {
    const path = join(directory, name)
    return { kind, what: path, ...hostIdOf(name), remove: () => removePath(path) }
  })
}

export async function removePath(path: string): Promise<boolean> {
  return rm(path, { recursive: true, force: true }).then(
    () => true,
    () => false,
  )
}

async function unmount(point: string): Promise<boolean> {
  const { exitCode } = await run('umount', ['--lazy', point], { timeoutMs: UNMOUNT_MS })
  return exitCode === 0
}

function hostIdOf(name: string | undefined): { readonly hostId?: string } {
  return name !== undefined && isHostId(name) ? { hostId: name } : {}
}

/** As the kernel writes blanks in paths. */
function unescaped(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8)))
}

const UNMOUNT_MS = 10_000
