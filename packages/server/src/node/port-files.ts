import type { GraderWorld } from './port-worlds.ts'

/** What a coordinator asks of a node for a sandbox's files. */
export interface PutFilesRequest {
  readonly sandbox: string
  /** Default `main`. */
  readonly world?: 'main' | GraderWorld
  readonly files: readonly PutFile[]
  /** Paths, with all that is below them. */
  readonly remove?: readonly string[]
  /** Directories that are made where they are missing, and emptied. */
  readonly clear?: readonly string[]
  /** Whose the files are: a user, or the sandbox's own where none is named. Default: root's. */
  readonly of?: { readonly user?: string | undefined }
}

export type PutFile = { readonly path: string; readonly mode: number } & (
  | { /** `sha256:…` */ readonly blob: string }
  | { readonly bytes: Uint8Array }
)

export interface ReadFileRequest {
  readonly sandbox: string
  /** Default `main`. */
  readonly world?: 'main' | GraderWorld
  readonly path: string
  readonly bytesMax: number
}
