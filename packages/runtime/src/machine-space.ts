/** Of the file system for writable layers that are on the machine's disk. */
export interface DiskSpace {
  readonly totalBytes: number
  readonly freeBytes: number
  /** Taken by the layers of sandboxes that live. */
  readonly heldBytes: number
}

/** Of the machine's memory, or of the part that a control group above the sandboxes leaves to them, where that is less. */
export interface MemorySpace {
  readonly totalBytes: number
  /** What a program can have without anything being swapped: the kernel drops caches of files for it. */
  readonly availableBytes: number
}
