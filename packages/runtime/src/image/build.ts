import type { ImageConfig } from '@sandlot/protocol'
import type { ImageLayer } from './image.ts'
import type { FunctionCall } from './shared-builds.ts'

/** Opens the bytes behind a digest. They are checked while they are read. */
export type OpenBlob = (
  digest: string,
  wait: { readonly signal: AbortSignal },
) => Promise<AsyncIterable<Uint8Array>>

/** Whether the bytes behind a digest are there. */
export type HasBlob = (
  digest: string,
  wait: { readonly signal?: AbortSignal | undefined },
) => Promise<boolean>

/** What a build may use. */
export interface BuildContext {
  /** Empty, its own, removed afterwards. */
  readonly directory: string
  readonly signal: AbortSignal
  /** One line for a person who waits. */
  readonly log: (line: string) => void
  /** One line as a program printed it, for who wants all of them. */
  readonly detail: (line: string) => void
  readonly openBlob: OpenBlob
  /** Has one of those who wait run a function; false where that came to nothing and another's turn is next. */
  readonly callFunction: (call: FunctionCall) => Promise<boolean>
  /** The last lines logged. */
  readonly logTail: () => readonly string[]
}

/** Layers still in the build's directory. */
export interface BuiltImage {
  readonly layers: readonly ImageLayer[]
  readonly config: ImageConfig
}
