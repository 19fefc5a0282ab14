import type { GraderWorld } from './port-worlds.ts'

/** What a coordinator asks of a node for a command. */
export interface ExecAddress {
  readonly sandbox: string
  readonly exec: string
}

export interface NodeExecRequest {
  readonly sandbox: string
  /** `ex_…`, chosen by the caller. */
  readonly exec: string
  /** Default `main`. */
  readonly world?: 'main' | GraderWorld
  /** Whose environment, working directory and user it has: of a world that shows this image. Default: the sandbox's. */
  readonly image?: string
  readonly argv: readonly string[]
  /** On top of the sandbox's own. */
  readonly env?: Readonly<Record<string, string>>
  /** Default: the sandbox's. */
  readonly cwd?: string
  readonly user?: string
  readonly stdin?: Uint8Array
  /** Deadline of the command itself, kept by the agent: the answer then says `timedOut`. */
  readonly timeoutMs?: number
  /** What is kept of each channel; defaults of the protocol. */
  readonly headBytes?: number
  readonly tailBytes?: number
}
