/**
 * A container as a queue sees it: a sandbox with the function loaded, that takes one input after another, several at once.
 *
 * opening ─▶ ready: takes inputs ─▶ gone, and why is recorded once.
 */
import type { TaskError } from '@sandlot/protocol'
import type { FunctionRecord } from './records.ts'
import type { TryEnd } from './tries.ts'

export interface Container {
  /** Of its sandbox. */
  readonly id: string
  /** Resolves when it takes nothing more. Never rejects. */
  readonly gone: Promise<void>
  /** Hands an input over, and waits for what becomes of it. Never rejects: one that is lost is an end too. */
  run(input: ContainerInput): Promise<Exclude<TryEnd, { kind: 'idle' }>>
  /** Tells the handler that nobody waits any more. */
  cancel(id: string): void
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
  /** Name that keeps the value, where it is long. */
  readonly outputPin: string
  readonly onLog: (line: { readonly channel: 'stdout' | 'stderr'; readonly text: string }) => void
}

export interface OpenContainer {
  readonly project: string
  /** Of its queue. */
  readonly queue: string
  readonly definition: FunctionRecord
  readonly signal: AbortSignal
}

/**
 * Resolves when it takes inputs. Rejects with a `SandlotError`: by its `fault` the function itself can't be loaded (`caller`,
 * `workload`), or it may come up later.
 */
export type ContainerSource = (request: OpenContainer) => Promise<Container>

export type ContainerEnd = { readonly kind: 'error' | 'infra'; readonly error: TaskError }
