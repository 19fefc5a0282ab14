import { attemptInProgress } from '../hedge/hedge.ts'
import type { AttemptAddress, Fenced } from './input.ts'
import type { Run } from './run.ts'

/**
 * Whether a sandbox that a node holds belongs to a live attempt. If not, the node ends it: its
 * release was lost on the way, or its creation was answered too late.
 */
export function ownsSandbox(
  run: Run,
  held: AttemptAddress & { readonly sandbox: string },
): boolean {
  const episode = attemptInProgress(run, held)
  if (!episode?.current) return false
  const { sandbox } = episode.current
  return sandbox === null || sandbox === held.sandbox
}

/**
 * Whether a token is still that of what is in progress. Ask before an offer is sent: between the
 * decision and its turn to be done, the lease may have been given to another.
 */
export function isCurrent(run: Run, fenced: Fenced): boolean {
  return attemptInProgress(run, fenced)?.current?.token === fenced.token
}
