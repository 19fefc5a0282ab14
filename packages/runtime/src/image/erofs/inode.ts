/**
 * One file of a layer, as it will be in the EROFS image. Names are latin1 strings: one character is one byte, so names that
 * are not UTF-8 survive, and sorting by character is sorting by byte.
 */
export interface Metadata {
  /** Permission bits with setuid, setgid and sticky: 0 to 0o7777. */
  mode: number
  uid: number
  gid: number
  /** Whole seconds since 1970, never negative. */
  mtimeSeconds: number
  mtimeNanoseconds: number
}

export interface FileInode extends Metadata {
  readonly kind: 'file'
  /** First block of the content; 0 when empty. */
  readonly block: number
  readonly sizeBytes: number
  /** The layer that has the content. Absent: the one that is being written. */
  layer?: string
}

export interface DirectoryInode extends Metadata {
  readonly kind: 'directory'
  readonly children: Map<string, Inode>
  /** Hides everything that layers below have here. gVisor's EROFS has no xattrs, so it is expanded before writing. */
  opaque: boolean
  /** No entry of its own was seen: it exists because something lies in it. */
  implicit: boolean
}

export interface SymlinkInode extends Metadata {
  readonly kind: 'symlink'
  readonly target: string
}

/** A character device 0/0: the name does not exist, whatever layers below have. */
export interface WhiteoutInode extends Metadata {
  readonly kind: 'whiteout'
}

export interface FifoInode extends Metadata {
  readonly kind: 'fifo'
}

/** Two names with the same object are hard links to one another. */
export type Inode = FileInode | DirectoryInode | SymlinkInode | WhiteoutInode | FifoInode

const epochMetadata = { uid: 0, gid: 0, mtimeSeconds: 0, mtimeNanoseconds: 0 }

export function newDirectory(metadata: Partial<Metadata> = {}): DirectoryInode {
  return {
    kind: 'directory',
    mode: 0o755,
    ...epochMetadata,
    ...metadata,
    children: new Map(),
    opaque: false,
    implicit: false,
  }
}

export function newWhiteout(): WhiteoutInode {
  return { kind: 'whiteout', mode: 0, ...epochMetadata }
}
