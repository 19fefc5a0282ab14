import { createReadStream } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { BackupFile } from '../backup.ts'
import type { Digest } from '../blobs.ts'
import { EngineError } from '../error.ts'
import type { SqliteBlobs } from './blobs.ts'
import type { Journal } from './journal.ts'

export interface BackedUp {
  readonly directory: string
  readonly journal: Journal
  readonly blobs: SqliteBlobs
}

/** Where the copy of the database lies until it was read. */
const COPY = 'engine.db.backup'

/** The database first, then the blobs that it pins. */
export async function* backupFiles(
  { directory, journal, blobs }: BackedUp,
  signal: AbortSignal | undefined,
): AsyncGenerator<BackupFile> {
  // Before the copy is touched: it may be that of another backup.
  using _ = blobs.holdAll()
  const copy = join(directory, COPY)
  await removeCopy(directory)
  try {
    const digests = (await journal.backUp(copy)) as readonly Digest[]
    signal?.throwIfAborted()
    const { size: sizeBytes } = await stat(copy)
    yield { path: 'engine.db', sizeBytes, open: () => createReadStream(copy) }
    for (const digest of digests) {
      signal?.throwIfAborted()
      yield await blobFile(blobs, digest)
    }
  } finally {
    await removeCopy(directory)
  }
}

async function blobFile(blobs: SqliteBlobs, digest: Digest): Promise<BackupFile> {
  const found = await blobs.has(digest)
  if (!found) {
    throw new EngineError('storage_failed', `the blob ${digest} is pinned, and is not there`)
  }
  const hex = digest.slice('sha256:'.length)
  const path = `blobs/${hex.slice(0, 2)}/${hex.slice(2)}`
  return { path, sizeBytes: found.sizeBytes, digest, open: () => contentOf(blobs, digest) }
}

/** Verified as it passes. */
async function* contentOf(blobs: SqliteBlobs, digest: Digest): AsyncGenerator<Uint8Array> {
  const { body } = await blobs.open(digest)
  yield* body
}

/** Also what a killed process left. */
async function removeCopy(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith(COPY)) await rm(join(directory, name), { force: true })
  }
}
