/** One file of a backup. */
export interface BackupFile {
  /** Below the directory of an engine of the same kind, with `/` between names. */
  readonly path: string
  readonly sizeBytes: number
  /** `sha256:…`, where it is known already: that of a blob is its name. */
  readonly digest?: string
  /** From first byte to last, once. */
  open(): AsyncIterable<Uint8Array>
}

export interface BackupOptions {
  readonly signal?: AbortSignal
}
