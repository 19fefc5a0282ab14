import { randomUUID } from 'node:crypto'
import type { Stats } from 'node:fs'
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  unlink,
  utimes,
} from 'node:fs/promises'
import { join } from 'node:path'
import type { Digest } from '../blobs.ts'
import { storageError } from './sqlite-error.ts'

/**
 * Where blobs lie: `<root>/<first two digits>/<the other 62>`, mode 0400; what is being written in `incoming/`, what lost its
 * digest in `corrupt/`. The time of modification is that of the last put.
 */
export class BlobFiles {
  readonly #root: string
  readonly #syncDirectories: boolean
  readonly #shards = new Set<string>()

  private constructor(root: string, syncDirectories: boolean) {
    this.#root = root
    this.#syncDirectories = syncDirectories
  }

  /** Makes the folders and removes what an earlier process left half written. */
  static async open(root: string, options: { syncDirectories: boolean }): Promise<BlobFiles> {
    const incoming = join(root, 'incoming')
    await mkdir(incoming, { recursive: true, mode: 0o700 })
    for (const name of await readdir(incoming)) await rm(join(incoming, name))
    return new BlobFiles(root, options.syncDirectories)
  }

  createIncoming(): Promise<{ path: string; handle: FileHandle }> {
    const path = join(this.#root, 'incoming', randomUUID())
    return io('a blob could not be written', async () => ({
      path,
      handle: await open(path, 'wx', 0o400),
    }))
  }

  /** Makes a written and flushed incoming file the blob. What stands there already is replaced only by another size. */
  accept(path: string, digest: Digest, written: { sizeBytes: number; modifiedMs: number }) {
    return io('a blob could not be stored', async () => {
      const standing = await this.stat(digest)
      if (standing?.size === written.sizeBytes) {
        await this.renew(digest, written.modifiedMs)
        return
      }
      await this.#makeShard(digest)
      await rename(path, this.#path(digest))
      if (this.#syncDirectories) await syncDirectory(join(this.#root, shardOf(digest)))
    })
  }

  /** As if it had been put at that time. */
  async renew(digest: Digest, atMs: number): Promise<void> {
    await utimes(this.#path(digest), atMs / 1000, atMs / 1000)
  }

  async discardIncoming(path: string): Promise<void> {
    await rm(path, { force: true })
  }

  stat(digest: Digest): Promise<Stats | undefined> {
    return absentAsUndefined(stat(this.#path(digest)))
  }

  open(digest: Digest): Promise<FileHandle | undefined> {
    return absentAsUndefined(open(this.#path(digest), 'r'))
  }

  async remove(digest: Digest): Promise<void> {
    await unlink(this.#path(digest))
  }

  /** Takes a blob out of the way, unless another file has taken its place since. */
  async setAside(digest: Digest, ino: number): Promise<void> {
    if ((await this.stat(digest))?.ino !== ino) return
    const corrupt = join(this.#root, 'corrupt')
    await mkdir(corrupt, { recursive: true, mode: 0o700 })
    await rename(this.#path(digest), join(corrupt, digest.replace(':', '-')))
  }

  /** Blobs last put at or before that time, in batches. */
  async *olderThan(putBeforeMs: number, batchSize: number): AsyncGenerator<Digest[]> {
    let batch: Digest[] = []
    for (const shard of await readdir(this.#root)) {
      if (!/^[0-9a-f]{2}$/.test(shard)) continue
      for (const rest of await readdir(join(this.#root, shard))) {
        const digest: Digest = `sha256:${shard}${rest}`
        const found = await this.stat(digest)
        if (found === undefined || found.mtimeMs > putBeforeMs) continue
        batch.push(digest)
        if (batch.length < batchSize) continue
        yield batch
        batch = []
      }
    }
    if (batch.length > 0) yield batch
  }

  #path(digest: Digest): string {
    return join(this.#root, shardOf(digest), digest.slice('sha256:'.length + 2))
  }

  async #makeShard(digest: Digest): Promise<void> {
    const shard = shardOf(digest)
    if (this.#shards.has(shard)) return
    await mkdir(join(this.#root, shard), { recursive: true, mode: 0o700 })
    if (this.#syncDirectories) await syncDirectory(this.#root)
    this.#shards.add(shard)
  }
}

/** Failures of the file system as errors of the engine. */
export async function io<T>(what: string, task: () => Promise<T>): Promise<T> {
  try {
    return await task()
  } catch (error) {
    throw storageError(error, what)
  }
}

function shardOf(digest: Digest): string {
  return digest.slice('sha256:'.length, 'sha256:'.length + 2)
}

async function syncDirectory(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

function absentAsUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
  return io('a blob could not be read', () =>
    promise.catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    }),
  )
}
