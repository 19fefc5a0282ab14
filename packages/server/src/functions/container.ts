/**
 * A container as a queue sees it: a sandbox with the function loaded, that takes one input after another, several at once.
 *
 * opening ─▶ ready: takes inputs ─▶ gone, and why is recorded once.
 */
import type { Tags, TaskError } from '@sandlot/protocol'
import type { FunctionRecord } from './records.ts'
import type { TryEnd } from './tries.ts'

export interface Container {
  /** Of its sandbox. */
  readonly id: string
  /** Resolves when it takes nothing more. Never rejects. */
  readonly gone: Promise<void>
  /** Hands an input over, and waits for what becomes of it. Never rejects: one that is lost is an end too. */
  run(input: ContainerInput): Promise<Exclude<TryEnd, { kind: 'idle' }>>
  /** Tells the handler that nobody waits any more, and forgets the input: `run` of it is never told of. */
  cancel(id: string): void
  /** Tells the handler that its time is over. What that comes to, `run` still tells. */
  abort(id: string): void
  /** Brings a stored content as a file beside the function's module. */
  bring(name: string, blob: string): Promise<void>
  /** Stores a file that the function left there, and removes it. Rejects where it is not the content of this digest. */
  collect(name: string, digest: string): Promise<void>
  /** Ends it with all that it works on. Idempotent. */
  close(): Promise<void>
}

export interface ContainerInput {
  /** Within this container. */
  readonly id: string
  readonly json: string | null
  readonly blob: string | null
  /** 1 for the first. */
  readonly attempt: number
  /** Name that keeps the value, where it is long; null: whoever takes it keeps it. */
  readonly outputPin: string | null
  readonly onLog: (line: { readonly channel: 'stdout' | 'stderr'; readonly text: string }) => void
  /** Gets what the function tells meanwhile. Unchecked. Default: nobody listens. */
  readonly onNews?: (news: unknown) => void
}

export interface OpenContainer {
  readonly project: string
  /** Of its sandbox: whose it is. */
  readonly tags: Tags
  readonly definition: FunctionRecord
  /** Whether the API answers on its loopback, to tokens of sandboxes alone. Default no. */
  readonly reachesApi?: boolean
  readonly signal: AbortSignal
}

/**
 * Resolves when it takes inputs. Rejects with a `SandlotError`: by its `fault` the function itself can't be loaded (`caller`,
 * `workload`), or it may come up later.
 */
export type ContainerSource = (request: OpenContainer) => Promise<Container>

export type ContainerEnd = { readonly kind: 'error' | 'infra'; readonly error: TaskError }
