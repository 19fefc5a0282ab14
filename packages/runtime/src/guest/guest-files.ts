import type { GuestBytes, GuestText, GuestWait } from './guest.ts'

export const GUEST_FILE_KINDS = [
  'file',
  'directory',
  'symlink',
  'fifo',
  'socket',
  'device',
] as const
export type GuestFileKind = (typeof GUEST_FILE_KINDS)[number]

/**
 * Files of a world, as its root sees them: a symlink resolves as the episode sees it and can't leave the world.
 * All fail with `not_found`, `not_directory`, `permission`, `world_not_open`, `world_unknown` or `io` where that fits.
 */
export interface GuestFiles {
  /** A regular file; `is_directory` or `not_file` for anything else, and never blocks on a FIFO. */
  read(world: string, path: GuestText, range?: ReadRange, wait?: GuestWait): Promise<FileContent>

  /** `no_space`, `exists` (with `exclusive`), `is_directory`. What was written before a failure stays. */
  write(
    world: string,
    path: GuestText,
    content: GuestBytes,
    options?: WriteOptions,
    wait?: GuestWait,
  ): Promise<{ sizeBytes: number }>

  stat(
    world: string,
    path: GuestText,
    options?: { readonly follow?: boolean },
    wait?: GuestWait,
  ): Promise<GuestFileStat>

  /** Entries of a directory in its own order, without `.` and `..`. */
  list(world: string, path: GuestText, wait?: GuestWait): AsyncIterable<GuestFileEntry>

  makeDirectory(
    world: string,
    path: GuestText,
    options?: { readonly parents?: boolean; readonly mode?: number },
    wait?: GuestWait,
  ): Promise<void>

  /** `not_empty` for a directory without `recursive`; with `force` a missing path is no failure. */
  remove(
    world: string,
    path: GuestText,
    options?: { readonly recursive?: boolean; readonly force?: boolean },
    wait?: GuestWait,
  ): Promise<void>

  rename(world: string, from: GuestText, to: GuestText, wait?: GuestWait): Promise<void>

  chmod(world: string, path: GuestText, mode: number, wait?: GuestWait): Promise<void>
}

export interface ReadRange {
  readonly offset?: number
  readonly length?: number
}

export interface WriteOptions {
  /** Permission bits of a new file. Default 0o644. */
  readonly mode?: number
  /** Make missing directories. Default false. */
  readonly parents?: boolean
  readonly append?: boolean
  /** Fail with `exists` when there is something already. */
  readonly exclusive?: boolean
  /** Owner of a new file. Default 0. */
  readonly uid?: number
  readonly gid?: number
}

export interface GuestFileStat {
  readonly kind: GuestFileKind
  readonly sizeBytes: number
  /** Permission bits. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtimeMs: number
  /** Where a symlink points. */
  readonly target?: Uint8Array
}

export interface GuestFileEntry {
  readonly name: Uint8Array
  readonly kind: GuestFileKind
  readonly sizeBytes: number
  readonly mode: number
  readonly mtimeMs: number
}

/** Content that is read once. Whoever doesn't read it to its end calls `cancel()` (a `break` does). */
export interface ContentStream<Result> extends AsyncIterable<Uint8Array> {
  /** Settles after the last byte: what the agent counted, or why it stopped. */
  readonly result: Promise<Result>
  /** Stops the transfer. Idempotent. */
  cancel(): void
}

export interface FileContent {
  /** The file when it was opened. */
  readonly stat: GuestFileStat
  readonly content: ContentStream<{ sizeBytes: number }>
}

export interface DifferenceOptions {
  /** Absolute paths where it is as if nothing had been done; a directory that is new there is empty. At most 64, `invalid` else. */
  readonly exclude?: readonly GuestText[]
}

export interface GuestTars {
  /** Unpacks a tar below `path`, which is made. `invalid` for absolute names, `..`, devices, links that leave it. */
  in(
    world: string,
    path: GuestText,
    tar: GuestBytes,
    options?: { readonly uid?: number; readonly gid?: number },
    wait?: GuestWait,
  ): Promise<{ entries: number }>

  /** A pax tar of a directory's content, or of one file. */
  out(world: string, path: GuestText, wait?: GuestWait): ContentStream<{ entries: number }>

  /**
   * What a world changed against what it was opened over, as a pax tar of whole files: a deleted name is a character device
   * 0/0, and so is each name that a replaced directory hides. Files with long stretches of zeros come in GNU tar's sparse format 1.0.
   * Sockets are left out, and what changes meanwhile is told as it was at some moment. The world may run or have ended.
   */
  difference(
    world: string,
    options?: DifferenceOptions,
    wait?: GuestWait,
  ): ContentStream<{ entries: number }>
}
