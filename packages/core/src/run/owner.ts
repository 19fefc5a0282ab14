import type { Run } from './run.ts'

/**
 * Whether a sandbox that a node holds belongs to a live attempt. If not, the node ends it: its
 * release was lost on the way, or its creation was answered too late.
 */
export function ownsSandbox(
  run: Run,
  held: { readonly episode: number; readonly attempt: number; readonly sandbox: string },
): boolean {
  const episode = run.live.get(held.episode)
  if (!episode?.current || episode.attempt !== held.attempt) return false
  const { sandbox } = episode.current
  return sandbox === null || sandbox === held.sandbox
}
