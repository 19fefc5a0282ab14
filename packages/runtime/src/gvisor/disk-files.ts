/**
 * The files of the machine's disk that hold writable layers, where those are not in memory. The runtime makes each in a directory
 * that it is given, and works on it through its descriptor; the pages are the kernel's cache.
 *
 * ```
 * <dataDirectory>/disks/<hostId>/<world>/   until the sandbox runs
 * ```
 * Then the names are removed: a file ends with its sandbox, whatever becomes of the daemon.
 */
import { type FileHandle, mkdir, open, readdir, readlink, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { type DiskSpace, DriverError } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { isHostId } from './paths.ts'
import type { DiskWorld, SandboxSizes } from './sizing.ts'
import type { SandboxState } from './state.ts'

/** A file system of a sandbox for the writable layer of one world. */
export interface DiskMount {
  readonly world: DiskWorld
  readonly bytes: number
  /** Where the runtime makes its file. */
  readonly directory: string
}

/** File systems that are memory themselves, which nobody has counted; by their numbers in linux/magic.h. */
const IN_MEMORY: Readonly<Record<number, string>> = { 16914836: 'tmpfs', 2240043254: 'ramfs' }
const BLOCK_BYTES = 512

export class DiskFiles {
  readonly #files: readonly FileHandle[]

  private constructor(files: readonly FileHandle[]) {
    this.#files = files
  }

  /** What the runtime made, which from now on has no name. */
  static async take(dataDirectory: string, hostId: string): Promise<DiskFiles> {
    const place = diskDirectory(dataDirectory, hostId)
    const entries = await readdir(place, { withFileTypes: true, recursive: true })
    const files = entries.filter((entry) => entry.isFile())
    const taken = await DiskFiles.#open(files.map((each) => join(each.parentPath, each.name)))
    await removeDiskNames(dataDirectory, hostId)
    return taken
  }

  /** Of a sandbox that an earlier daemon started: what the sentry holds. */
  static async find({ hostId, sentryPid }: SandboxState): Promise<DiskFiles> {
    const descriptors = `/proc/${sentryPid}/fd`
    const place = diskDirectory('', hostId)
    const paths = new Map<string, string>()
    for (const name of await readdir(descriptors).catch(() => [])) {
      const path = join(descriptors, name)
      const target = await readlink(path).catch(() => '')
      if (target.includes(`/${place}/`)) paths.set(target, path)
    }
    return await DiskFiles.#open([...paths.values()])
  }

  /** What they take of the disk. */
  async heldBytes(): Promise<number> {
    const stats = await Promise.all(this.#files.map((file) => file.stat()))
    return stats.reduce((sum, { blocks }) => sum + blocks * BLOCK_BYTES, 0)
  }

  async close(): Promise<void> {
    await Promise.all(this.#files.map((file) => file.close()))
  }

  static async #open(paths: readonly string[]): Promise<DiskFiles> {
    await using opened = new AsyncDisposableStack()
    const files: FileHandle[] = []
    for (const path of paths) files.push(opened.use(await open(path, 'r')))
    opened.move()
    return new DiskFiles(files)
  }
}

/** Where a sandbox's file systems are to be made. Fails with `unsupported` where that is no disk. */
export async function makeDiskDirectories(
  dataDirectory: string,
  hostId: string,
  disks: SandboxSizes['disks'],
): Promise<readonly DiskMount[]> {
  if (disks.length === 0) return []
  await needDisk(dataDirectory)
  const place = diskDirectory(dataDirectory, hostId)
  const mounts = disks.map((disk) => ({ ...disk, directory: join(place, disk.world) }))
  for (const { directory } of mounts) await mkdir(directory, { recursive: true, mode: 0o700 })
  return mounts
}

/** Idempotent. */
export async function removeDiskNames(dataDirectory: string, hostId: string): Promise<void> {
  await rm(diskDirectory(dataDirectory, hostId), { recursive: true, force: true })
}

/** What a daemon left that died in the middle of a start. Another daemon may share the data directory, so young names stay. Those it removed. */
export async function sweepDiskNames(
  dataDirectory: string,
  nowMs: number,
): Promise<readonly string[]> {
  const directory = disksDirectory(dataDirectory)
  const removed: string[] = []
  for (const name of (await readdir(directory).catch(() => [])).filter(isHostId)) {
    const { mtimeMs } = await stat(join(directory, name)).catch(() => ({ mtimeMs: nowMs }))
    if (mtimeMs + RUNTIME_LIMITS.diskNamesMs >= nowMs) continue
    await removeDiskNames(dataDirectory, name)
    removed.push(join(directory, name))
  }
  return removed
}

/** @throws DriverError `unsupported` where the data directory is no disk */
export async function diskSpace(
  dataDirectory: string,
  living: readonly DiskFiles[],
): Promise<DiskSpace> {
  await needDisk(dataDirectory)
  const held = await Promise.all(living.map((files) => files.heldBytes().catch(() => 0)))
  const { bavail, blocks, bsize } = await statfs(dataDirectory)
  return {
    totalBytes: blocks * bsize,
    freeBytes: bavail * bsize,
    heldBytes: held.reduce((sum, bytes) => sum + bytes, 0),
  }
}

async function needDisk(dataDirectory: string): Promise<void> {
  await mkdir(dataDirectory, { recursive: true })
  const kind = await memoryKind(dataDirectory)
  if (kind === undefined) return
  throw new DriverError(
    'unsupported',
    `${dataDirectory} is in memory (${kind}): there is no disk for files of sandboxes`,
    { hint: 'set SANDLOT_DATA_DIRECTORY to a directory on a disk, or ask for a smaller disk' },
  )
}

/** The kind of a file system that lies in memory; undefined for any other. */
export async function memoryKind(directory: string): Promise<string | undefined> {
  return IN_MEMORY[(await statfs(directory)).type]
}

function disksDirectory(dataDirectory: string): string {
  return join(dataDirectory, 'disks')
}

function diskDirectory(dataDirectory: string, hostId: string): string {
  return join(disksDirectory(dataDirectory), hostId)
}
