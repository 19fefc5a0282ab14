import type { SandboxFate } from '../run/input.ts'

/**
 * What really happened, which core can't see: the judge compares its rows with it. Keys are
 * sandboxes.
 */
export interface Truth {
  readonly deaths: Map<string, { readonly atMs: number; readonly cause: SandboxFate['cause'] }>
  /** What graders, and where there is none the episodes, really gave, and when. */
  readonly given: Map<string, Given[]>
  /** Whether it was the platform each time that the daemon's grader gave nothing. */
  readonly ungraded: Map<string, boolean>
  /** How often an agent's code was begun in a sandbox. */
  readonly begun: Map<string, number>
  /** What the agent that began in a sandbox was told of the policy's version. */
  readonly versions: Map<string, number>
  /** Tokens whose work was called off: nothing that they give counts any more. */
  readonly revoked: Set<number>
  cancelled: boolean
  /** Sandboxes that their node ended because nobody owned them. */
  reaped: number
}

export interface Given {
  readonly atMs: number
  readonly reward: number
  readonly by: 'daemon' | 'worker'
  readonly token: number
}

export function noteGiven(truth: Truth, sandbox: string, given: Given): void {
  truth.given.set(sandbox, [...(truth.given.get(sandbox) ?? []), given])
}

export function noteFailed(truth: Truth, sandbox: string, byPlatform: boolean): void {
  truth.ungraded.set(sandbox, byPlatform && (truth.ungraded.get(sandbox) ?? true))
}

export function createTruth(): Truth {
  return {
    deaths: new Map(),
    given: new Map(),
    ungraded: new Map(),
    begun: new Map(),
    versions: new Map(),
    revoked: new Set(),
    cancelled: false,
    reaped: 0,
  }
}
