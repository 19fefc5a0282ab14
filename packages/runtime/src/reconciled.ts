export interface ReconcileOptions {
  /** Whether anybody knows the sandbox or the blank of this host id. */
  readonly isWanted: (hostId: string) => boolean
  readonly signal?: AbortSignal
}

/** What one look put right. */
export interface Reconciled {
  /** On the machine, and of nobody: removed. A line each, for a person. */
  readonly removed: readonly string[]
  /** The same, but it could not be removed; the next look tries again. */
  readonly stuck: readonly string[]
  /** Host ids of those that were believed to be alive and of which nothing ran any more: ended, with a fate. */
  readonly dead: readonly string[]
  /** Host ids of those that lived, and that nobody had wanted for `RUNTIME_LIMITS.unwantedMs`: ended. */
  readonly unwanted: readonly string[]
}
