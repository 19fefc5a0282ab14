/**
 * Content by its digest: large things, stored once, never changed.
 *
 * - A **digest** is `sha256:` and 64 lower-case hexadecimal digits.
 * - A **pin** is a name that keeps one blob. Many names may pin one blob; a name pins one blob at a time.
 * - `collect` removes what no pin keeps and nobody has put lately.
 *
 * Memory is constant whatever the size. A blob is there whole or not at all, also after SIGKILL or loss of power; half-written
 * ones are removed at the next start.
 */
export interface Blobs {
  /**
   * Stores the bytes and resolves once they are durable. Storing what is there already costs no disk and renews its grace.
   * Errors: `blob_mismatch` (nothing stored), `disk_full` (nothing stored), and whatever the source throws (nothing stored).
   */
  put(source: BlobSource, options?: PutBlobOptions): Promise<BlobInfo>
  /** Size of the blob; undefined where there is none. */
  has(digest: Digest, options?: HasBlobOptions): Promise<BlobInfo | undefined>
  /**
   * Reads a blob, or a part of it. A whole one is verified as it passes: the stream errors with `blob_corrupt` at its end where
   * the bytes are no longer those of the digest. A part is not verified. Cancel or drain the body, it holds a descriptor.
   * An open body outlives `collect`. Errors: `not_found`, `invalid_argument` for an offset beyond the end.
   */
  open(digest: Digest, options?: OpenBlobOptions): Promise<OpenBlob>
  /** Keeps the blob under `name`, in place of what the name kept before. Errors: `not_found`. */
  pin(name: string, digest: Digest, options?: BlobCallOptions): Promise<void>
  /** Gives up the name. False where it kept nothing. */
  unpin(name: string, options?: BlobCallOptions): Promise<boolean>
  /** Pins whose names begin with `prefix`, in order of name. */
  pins(prefix: string, options?: ListPinsOptions): Promise<PinListing>
  /** Removes every blob that no pin keeps and that was last put longer than `graceMs` ago (default 1 h). */
  collect(options?: CollectOptions): Promise<Collected>
}

export type Digest = `sha256:${string}`

/** Bytes, or a stream of them (a Node or a web stream is one). Its chunks must not change after they were given. */
export type BlobSource = Uint8Array | AsyncIterable<Uint8Array>

export interface BlobCallOptions {
  readonly signal?: AbortSignal
}

export interface HasBlobOptions extends BlobCallOptions {
  /** Who asks is about to use it: its grace begins anew. Default: false. */
  readonly renew?: boolean
}

export interface PutBlobOptions extends BlobCallOptions {
  /** Refuse bytes of another digest. */
  readonly expectDigest?: Digest
  /** Pin under this name before the blob can be seen by `collect`. */
  readonly pin?: string
  /** Refuse, with `too_large`, a source that gives more. Default: no bound. */
  readonly sizeBytesMax?: number
}

export interface BlobInfo {
  readonly digest: Digest
  readonly sizeBytes: number
}

export interface OpenBlobOptions extends BlobCallOptions {
  /** Default 0. */
  readonly offset?: number
  /** Default: to the end. May reach beyond it. */
  readonly length?: number
}

export interface OpenBlob extends BlobInfo {
  /** Bytes that the body will give. */
  readonly length: number
  readonly body: ReadableStream<Uint8Array>
}

export interface ListPinsOptions extends BlobCallOptions {
  /** Exclusive cursor: a name, usually the previous page's `next`. */
  readonly after?: string
  /** 1 to 10,000; default 1,000. */
  readonly limit?: number
}

export interface PinListing {
  readonly pins: readonly { readonly name: string; readonly digest: Digest }[]
  /** Cursor of the next page; absent on the last. */
  readonly next?: string
}

export interface CollectOptions extends BlobCallOptions {
  readonly graceMs?: number
}

export interface Collected {
  readonly blobs: number
  readonly sizeBytes: number
}
