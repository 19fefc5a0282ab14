import type { Decision } from '../run/decision.ts'
import type { Episode } from '../run/run.ts'
import { endAttempt } from './decide-end.ts'
import { giveUp } from './settle.ts'

/** Ends an attempt without a fault of its own, unless its end is decided: it is made again, and no budget pays. */
export function giveUpAttempt(decision: Decision, episode: Episode, cause: string): void {
  if (episode.phase === 'releasing') return
  const ending = giveUp(cause, false)
  endAttempt(decision, episode, { ending, revoke: cause })
}
