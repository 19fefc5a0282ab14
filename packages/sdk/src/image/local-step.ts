import type { BuildStep, ImageSource, NetworkPolicy, ResourcesInput } from '@sandlot/protocol'
import type { ImageDescription } from './image.ts'

type RunStep = Extract<BuildStep, { kind: 'run' }>
type FunctionStep = Extract<BuildStep, { kind: 'function' }>
type CopyStep = Extract<BuildStep, { kind: 'copy' }>
type CopyFromStep = Extract<BuildStep, { kind: 'copyFrom' }>

/** Where the file system of an image begins, as this machine sees it: paths are its own. */
export type ImageBase =
  | Extract<ImageSource, { kind: 'debian' | 'registry' | 'id' }>
  | { readonly kind: 'directory' | 'tar' | 'oci'; readonly path: string }
  | { readonly kind: 'empty' }
  | { readonly kind: 'dockerfile'; readonly path: string; readonly options: DockerfileOptions }

export interface DockerfileOptions {
  /** The directory that `COPY` and `ADD` take files from. Default: where the Dockerfile lies. */
  readonly context?: string
  /** The stage to build. Default: the last one. */
  readonly target?: string
  /** Values for its `ARG`s. */
  readonly args?: Readonly<Record<string, string>>
  /** How long each `RUN` may take: `'10m'` or milliseconds. Default: one hour; a day at most. */
  readonly timeout?: string | number
}

/** A step as it is described here: contents are still files of this machine. */
export type LocalStep =
  | Exclude<BuildStep, RunStep | FunctionStep | CopyStep | CopyFromStep>
  | (Omit<FunctionStep, 'resources'> & { readonly resources?: ResourcesInput })
  | (Omit<RunStep, 'timeout'> & Pick<RunOptions, 'timeout'>)
  | (Omit<CopyStep, 'blob' | 'content'> & { readonly files: LocalCopy })
  | (Omit<CopyFromStep, 'source'> & { readonly source: ImageDescription })

/** What is copied: the bytes of a tar, made when the image is built, and where they come from for messages. */
export interface LocalCopy {
  readonly from: string
  /** @throws SandlotError when a path is not there, or something in it can't be copied */
  readonly tar: () => Promise<CopiedTar>
}

export interface CopiedTar {
  readonly bytes: AsyncIterable<Uint8Array>
  /** The tar holds one file; see the protocol's `copy`. */
  readonly file: boolean
  /** The digest of what is in it, once all bytes were read. Without it the tar is known by its own. */
  readonly content?: () => string
}

export interface CopyOptions {
  /** `user`, `user:group` or numbers; names are looked up in the image. Default: root for files of this machine, else as they were. */
  readonly owner?: string
  /** Permission bits of all that is copied, such as `0o755`. Default: as they are here. */
  readonly mode?: number
}

export interface LocalCopyOptions extends CopyOptions {
  /** Patterns of what is left out of a directory, as in a `.dockerignore`. */
  readonly exclude?: readonly string[]
}

export interface RunOptions {
  /** Variables of this command alone. */
  readonly env?: Readonly<Record<string, string>>
  /** What it may reach. Default: that of the image, see `network()`. */
  readonly network?: NetworkPolicy
  /** It fails when it takes longer: `'10m'` or milliseconds. Default: one hour; a day at most. */
  readonly timeout?: string | number
}
