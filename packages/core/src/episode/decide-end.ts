import type { Outcome } from '@sandlot/protocol'
import { otherInProgress } from '../hedge/hedge.ts'
import { OUTCOME_RULES } from '../outcome/rules.ts'
import { addressOf, type Decision, emit } from '../run/decision.ts'
import type { EventOf } from '../run/event.ts'
import type { Episode } from '../run/run.ts'
import type { Ending } from './ending.ts'
import { giveUp } from './settle.ts'

/** Why an attempt is given up where the other has ended the episode. */
export const OTHER_FIRST = 'the other attempt was first'

type End = Omit<EventOf<'attempt_ended'>, 'type' | 'atMs' | 'episode' | 'attempt'>

/**
 * The one place that ends an attempt. Where two of an episode are in progress, it decides what becomes of the other: the episode ends
 * only with its last one.
 */
export function endAttempt(decision: Decision, episode: Episode, end: End): void {
  const other = otherInProgress(decision.run, episode)
  const ending = other ? besideOther(end.ending) : end.ending
  if (other && ending.next === 'final') giveUpBeside(decision, other, OTHER_FIRST)
  emit(decision, { type: 'attempt_ended', ...addressOf(episode), ...end, ending })
}

/** Of an attempt that is not wanted, since the other one goes on. */
export function giveUpBeside(decision: Decision, episode: Episode, cause: string): void {
  const ending = giveUp(cause, false)
  emit(decision, { type: 'attempt_ended', ...addressOf(episode), ending, revoke: cause })
}

/** Only a verdict, or what ends the episode as a whole, is an end while another attempt goes on; anything else leaves it to that one. */
function besideOther(ending: Ending): Ending {
  const { outcome, cause, next } = ending
  if (next === 'retry') return { ...ending, spends: null, delayMs: 0 }
  if (OUTCOME_RULES[outcome].valid || ENDS_EPISODE.has(outcome)) return ending
  return { next: 'retry', outcome, cause, spends: null, delayMs: 0 }
}

const ENDS_EPISODE: ReadonlySet<Outcome> = new Set([
  'cancelled_user',
  'cancelled_quorum',
  'task_invalid',
])
