/**
 * A data directory out of a backup. Nothing is replaced: the directory is new or empty, everything is unpacked beside it, held against
 * its digest, opened once, and only then takes its place. What a killed restore left beside it, the next one removes, and the next start.
 */
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, open, readdir, rename, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandlotError } from '@sandlot/protocol'
import { readTar, TarError } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import { openEngine } from '../open-engine.ts'
import {
  BACKUP_FORMAT,
  type BackedUpFile,
  type BackupHeader,
  backedUpFile,
  backupHeader,
  DATA_PREFIX,
  FILES_NAME,
  HEADER_NAME,
} from './manifest.ts'
import { openPlace, removeUnfinished } from './unpacking-place.ts'

export interface RestoreOptions {
  /** The bytes of the backup, read once. */
  readonly archive: AsyncIterable<Uint8Array>
  /** New, or empty. */
  readonly dataDirectory: string
  readonly signal?: AbortSignal
}

export interface Restored extends BackupHeader {
  readonly files: number
  readonly sizeBytes: number
}

/** @throws SandlotError `invalid_request` where the directory is in use or the backup is none, or not whole; `disk_full`. Nothing is left then. */
export async function restoreBackup({
  archive,
  dataDirectory,
  signal,
}: RestoreOptions): Promise<Restored> {
  await checkEmpty(dataDirectory)
  try {
    await mkdir(dirname(dataDirectory), { recursive: true })
    await removeUnfinished(dataDirectory)
    await using place = await openPlace(dataDirectory)
    const restored = await unpack(archive, place.data, signal)
    await tryOut(place.data)
    await sync(place.data)
    await rmdir(dataDirectory).catch(() => {})
    await rename(place.data, dataDirectory)
    return restored
  } catch (error) {
    if (error instanceof TarError) throw refused(`the backup is damaged: ${error.message}`)
    throw explained(error, dataDirectory)
  }
}

function explained(error: unknown, dataDirectory: string): unknown {
  const { code, syscall, message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC') {
    return new SandlotError('disk_full', `the disk of ${dataDirectory} is too small for the backup`)
  }
  if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'EISDIR') {
    return refused('it has one file twice')
  }
  if (syscall === undefined) return error
  return new SandlotError('invalid_request', `${dataDirectory} can't be written: ${message}`, {
    hint: 'Start as root, or name a directory that may be written.',
  })
}

async function checkEmpty(dataDirectory: string): Promise<void> {
  const names = await readdir(dataDirectory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new SandlotError('invalid_request', `${dataDirectory} can't be used: ${error.message}`)
  })
  if (names.length === 0) return
  throw new SandlotError(
    'invalid_request',
    `the data directory ${dataDirectory} is not empty, and may be a daemon's`,
    { hint: 'Name a new one with --data-directory, or move the old one away first.' },
  )
}

async function unpack(
  archive: AsyncIterable<Uint8Array>,
  place: string,
  signal: AbortSignal | undefined,
): Promise<Restored> {
  const found = new Map<string, BackedUpFile>()
  let header: BackupHeader | undefined
  let listed: readonly BackedUpFile[] | undefined
  for await (const { type, path, content, sizeBytes } of readTar(archive)) {
    signal?.throwIfAborted()
    if (type !== 'file' || listed) throw refused(`it has something that no backup has: ${path}`)
    if (!header) {
      header = parseHeader(path, await textOf(content, sizeBytes))
    } else if (path === FILES_NAME) {
      listed = parseFiles(await textOf(content, sizeBytes))
    } else {
      const file = await write(place, path, content)
      found.set(file.path, file)
    }
  }
  if (!header) throw refused('there is nothing in it')
  if (!listed) throw refused('its end is missing: it was not made to its end, or not copied whole')
  compare(found, listed)
  const sizeBytes = listed.reduce((sum, file) => sum + file.sizeBytes, 0)
  return { ...header, files: listed.length, sizeBytes }
}

function parseHeader(path: string, text: string): BackupHeader {
  if (path !== HEADER_NAME) throw refused(`it begins with ${path.slice(0, 100)}`)
  const parsed = backupHeader.safeParse(jsonOf(text))
  if (!parsed.success) throw refused('what it says of itself can not be read')
  const { format, version } = parsed.data
  if (format === BACKUP_FORMAT) return parsed.data
  throw refused(
    `it is of format ${format}, made by version ${version}; this program reads format ${BACKUP_FORMAT}`,
    {
      hint: `Restore it with version ${version} of sandlot.`,
    },
  )
}

function parseFiles(text: string): readonly BackedUpFile[] {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const parsed = backedUpFile.safeParse(jsonOf(line))
    if (!parsed.success) throw refused('the list of its files can not be read')
    return parsed.data
  })
}

async function write(
  place: string,
  member: string,
  content: AsyncIterable<Uint8Array>,
): Promise<BackedUpFile> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  const path = member.slice(DATA_PREFIX.length)
  const known = backedUpFile.shape.path.safeParse(path)
  if (!member.startsWith(DATA_PREFIX) || !known.success) {
    throw refused(`it has something that no backup has: ${member.slice(0, 100)}`)
  }
  const target = join(place, path)
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  async function* counted() {
    for await (const bytes of content) {
      hash.update(bytes)
      sizeBytes += bytes.length
      yield bytes
    }
  }
  const file = createWriteStream(target, { flags: 'wx', mode: 0o600 })
  await pipeline(Readable.from(counted()), file)
  return { path, sizeBytes, digest: `sha256:${hash.digest('hex')}` }
}

function compare(found: ReadonlyMap<string, BackedUpFile>, listed: readonly BackedUpFile[]): void {
  for (const { path, sizeBytes, digest } of listed) {
    const file = found.get(path)
    if (!file) throw refused(`${path} is missing in it`)
    if (file.sizeBytes !== sizeBytes || file.digest !== digest) {
      throw refused(`${path} in it is not what was backed up`)
    }
  }
  if (found.size !== listed.length) throw refused('it has files that it does not list')
}

/** Whether a daemon of this version opens it. */
async function tryOut(place: string): Promise<void> {
  const engine = await openEngine({ dataDirectory: place, durability: 'power' })
  await engine[Symbol.asyncDispose]()
}

async function sync(place: string): Promise<void> {
  for (const entry of await readdir(place, { recursive: true, withFileTypes: true })) {
    await using handle = await open(join(entry.parentPath, entry.name), 'r')
    await handle.sync()
  }
}

async function textOf(content: AsyncIterable<Uint8Array>, sizeBytes: number): Promise<string> {
  if (sizeBytes > SERVER_LIMITS.backupListBytes) throw refused('the list of its files is too long')
  return Buffer.concat(await Array.fromAsync(content)).toString()
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refused(why: string, { hint = HINT }: { readonly hint?: string } = {}): SandlotError {
  return new SandlotError('invalid_request', `this is no backup that can be restored: ${why}`, {
    hint,
  })
}

const HINT = 'Copy the file again, or take another backup: `sandlot backup FILE` makes one.'
