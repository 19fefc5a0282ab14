import { checkBytes, checkInteger, checkName, checkPrefix, invalid } from '../argument.ts'
import type {
  BlobCallOptions,
  BlobInfo,
  BlobSource,
  Blobs,
  Collected,
  CollectOptions,
  Digest,
  HasBlobOptions,
  ListPinsOptions,
  OpenBlob,
  OpenBlobOptions,
  PinListing,
  PutBlobOptions,
} from '../blobs.ts'
import type { Clock } from '../clock.ts'
import { EngineError } from '../error.ts'
import { BLOB_GRACE_MS, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX } from '../limits.ts'
import { readBlob } from './blob-body.ts'
import type { BlobFiles } from './blob-files.ts'
import { writeIncoming } from './blob-incoming.ts'
import type { Journal } from './journal.ts'
import { KeyedLock } from './keyed-lock.ts'

/** Digests that one question about their pins carries. */
const COLLECT_BATCH = 500
const DIGEST = /^sha256:[0-9a-f]{64}$/

export interface SqliteBlobsOptions {
  readonly files: BlobFiles
  readonly journal: Journal
  readonly clock: Clock
  readonly closing: AbortSignal
}

/** Content in files, pins in the database. What touches one digest's file or pins goes through its lock. */
export class SqliteBlobs implements Blobs {
  readonly #files: BlobFiles
  readonly #journal: Journal
  readonly #clock: Clock
  readonly #closing: AbortSignal
  readonly #locks = new KeyedLock()
  readonly #puts = new Set<Promise<unknown>>()
  /** Somebody reads blobs by what was pinned at one instant. */
  #isHeld = false

  constructor({ files, journal, clock, closing }: SqliteBlobsOptions) {
    this.#files = files
    this.#journal = journal
    this.#clock = clock
    this.#closing = closing
  }

  async put(source: BlobSource, options: PutBlobOptions = {}): Promise<BlobInfo> {
    if (options.pin !== undefined) checkName('pin', options.pin)
    if (options.expectDigest !== undefined) checkDigest(options.expectDigest)
    const { sizeBytesMax = Number.MAX_SAFE_INTEGER } = options
    checkInteger('sizeBytesMax', sizeBytesMax, 0, Number.MAX_SAFE_INTEGER)
    if (source instanceof Uint8Array) checkBytes('the blob', source, sizeBytesMax)
    for (const signal of [options.signal, this.#closing]) signal?.throwIfAborted()
    const put = this.#put(source, options, sizeBytesMax)
    this.#puts.add(put)
    try {
      return await put
    } finally {
      this.#puts.delete(put)
    }
  }

  async has(
    digest: Digest,
    { signal, renew = false }: HasBlobOptions = {},
  ): Promise<BlobInfo | undefined> {
    checkDigest(digest)
    signal?.throwIfAborted()
    return await this.#locks.run(digest, async () => {
      const stat = await this.#files.stat(digest)
      if (stat && renew) await this.#files.renew(digest, this.#clock.now())
      return stat && { digest, sizeBytes: stat.size }
    })
  }

  async open(digest: Digest, options: OpenBlobOptions = {}): Promise<OpenBlob> {
    const { offset = 0, length = Number.MAX_SAFE_INTEGER, signal } = options
    checkDigest(digest)
    checkInteger('offset', offset, 0, Number.MAX_SAFE_INTEGER)
    checkInteger('length', length, 0, Number.MAX_SAFE_INTEGER)
    signal?.throwIfAborted()
    const handle = await this.#files.open(digest)
    if (handle === undefined) throw notFound(digest)
    const { size, ino } = await handle.stat()
    if (offset > size) {
      await handle.close()
      throw invalid('offset', `is beyond the end of ${digest}, which has ${size} bytes`)
    }
    const giving = Math.min(length, size - offset)
    const corrupt = () => this.#locks.run(digest, () => this.#files.setAside(digest, ino))
    const whole = giving === size
    const verify = whole ? { digest, corrupt } : undefined
    const body = readBlob({ handle, offset, length: giving, verify, signal })
    return { digest, sizeBytes: size, length: giving, body }
  }

  async pin(name: string, digest: Digest, { signal }: BlobCallOptions = {}): Promise<void> {
    checkName('name', name)
    checkDigest(digest)
    await this.#locks.run(digest, async () => {
      if ((await this.#files.stat(digest)) === undefined) throw notFound(digest)
      await this.#journal.submit('pin.set', { name, digest }, { signal })
    })
  }

  async unpin(name: string, { signal }: BlobCallOptions = {}): Promise<boolean> {
    checkName('name', name)
    return (await this.#journal.submit('pin.remove', { name }, { signal })).result
  }

  async pins(prefix: string, options: ListPinsOptions = {}): Promise<PinListing> {
    const { after, limit = PAGE_ITEMS_DEFAULT, signal } = options
    checkPrefix(prefix)
    checkInteger('limit', limit, 1, PAGE_ITEMS_MAX)
    const request = { prefix, limit: limit + 1, ...(after !== undefined && { after }) }
    const { result } = await this.#journal.submit('pin.list', request, { signal })
    // What was pinned is what `checkDigest` let through.
    const pins = result.slice(0, limit) as { name: string; digest: Digest }[]
    const last = pins.at(-1)
    return { pins, ...(result.length > limit && last && { next: last.name }) }
  }

  async collect({ graceMs = BLOB_GRACE_MS, signal }: CollectOptions = {}): Promise<Collected> {
    checkInteger('graceMs', graceMs, 0, Number.MAX_SAFE_INTEGER)
    const putBeforeMs = this.#clock.now() - graceMs
    let blobs = 0
    let sizeBytes = 0
    for await (const old of this.#files.olderThan(putBeforeMs, COLLECT_BATCH)) {
      for (const digest of await this.#unpinned(old, signal)) {
        const freed = await this.#removeUnpinned(digest, putBeforeMs, signal)
        if (freed === undefined) continue
        blobs += 1
        sizeBytes += freed
      }
    }
    return { blobs, sizeBytes }
  }

  /** Nothing is removed until it is disposed, by the one backup that there is at a time. */
  holdAll(): Disposable {
    if (this.#isHeld) throw new EngineError('backlog_full', 'a backup is being made already')
    this.#isHeld = true
    return {
      [Symbol.dispose]: () => {
        this.#isHeld = false
      },
    }
  }

  /** Waits for the puts under way, which `closing` has stopped. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#puts)
  }

  async #put(source: BlobSource, options: PutBlobOptions, sizeBytesMax: number): Promise<BlobInfo> {
    const { expectDigest, pin, signal } = options
    await using incoming = await writeIncoming(source, {
      files: this.#files,
      modifiedMs: this.#clock.now(),
      sizeBytesMax,
      signals: [signal, this.#closing],
    })
    const { digest, sizeBytes } = incoming
    if (expectDigest !== undefined && expectDigest !== digest) {
      throw new EngineError(
        'blob_mismatch',
        `the bytes have digest ${digest}, not ${expectDigest}`,
        {
          details: { expected: expectDigest, actual: digest },
        },
      )
    }
    await this.#locks.run(digest, async () => {
      await incoming.accept()
      if (pin !== undefined) await this.#journal.submit('pin.set', { name: pin, digest })
    })
    return { digest, sizeBytes }
  }

  async #unpinned(digests: readonly Digest[], signal: AbortSignal | undefined): Promise<Digest[]> {
    const { result } = await this.#journal.submit('pin.unpinned', { digests }, { signal })
    return result as Digest[]
  }

  /** Size of what was removed; undefined where it was pinned or put again meanwhile. */
  #removeUnpinned(
    digest: Digest,
    putBeforeMs: number,
    signal: AbortSignal | undefined,
  ): Promise<number | undefined> {
    return this.#locks.run(digest, async () => {
      if (this.#isHeld || (await this.#unpinned([digest], signal)).length === 0) return undefined
      const stat = await this.#files.stat(digest)
      if (stat === undefined || stat.mtimeMs > putBeforeMs) return undefined
      await this.#files.remove(digest)
      return stat.size
    })
  }
}

function checkDigest(digest: string): asserts digest is Digest {
  if (typeof digest === 'string' && DIGEST.test(digest)) return
  throw invalid('digest', 'must be sha256: and 64 lower-case hexadecimal digits')
}

function notFound(digest: Digest): EngineError {
  return new EngineError('not_found', `there is no blob ${digest}`)
}
