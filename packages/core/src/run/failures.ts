import type { Outcome } from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'
import { type CauseCount, topCauses } from '../report/causes.ts'
import type { FailureWatch } from './run.ts'

export function emptyWatch(): FailureWatch {
  return { window: [], windowAt: 0, errors: 0, streak: 0, lostNode: null, lostAtMs: 0 }
}

/** Why the run must not go on by itself, or undefined. */
export function reasonToPause(
  watch: FailureWatch,
  causes: readonly CauseCount[],
): string | undefined {
  if (watch.window.length === CORE_LIMITS.pauseWindow && watch.errors >= CORE_LIMITS.pauseErrors) {
    const met = ERRORS.filter((_, at) => watch.window.includes(at + 1))
    const first = topCauses(causes).find(
      ({ outcome, retried }) => !retried && met.some((each) => each === outcome),
    )
    const mostly = first === undefined ? '' : `, most of them because: ${first.cause}`
    return `${watch.errors} of the last ${CORE_LIMITS.pauseWindow} episodes ended in ${met.join(' or ')}${mostly}`
  }
  if (watch.streak >= CORE_LIMITS.platformStreak) {
    return `${watch.streak} attempts in a row failed by the platform, and no sandbox came up`
  }
  return undefined
}

/** Notes how an episode ended. One that was cancelled says nothing of what it would have come to. */
export function noteEnding(watch: FailureWatch, outcome: Outcome): void {
  if (CANCELLED.has(outcome)) return
  const error = ERRORS.indexOf(outcome) + 1
  watch.errors += Math.sign(error) - Math.sign(watch.window[watch.windowAt] ?? 0)
  watch.window[watch.windowAt] = error
  watch.windowAt = (watch.windowAt + 1) % CORE_LIMITS.pauseWindow
}

/** What the next episodes are likely to end in as well: the user's code is broken, or its model is away. */
const ERRORS: readonly Outcome[] = ['episode_error', 'model_error']

const CANCELLED: ReadonlySet<Outcome> = new Set([
  'cancelled_user',
  'cancelled_quorum',
  'cancelled_stale',
])

/** Notes an attempt that the platform failed; a node that dies with all its sandboxes counts once. */
export function notePlatformFailure(watch: FailureWatch, node: string | null, atMs: number): void {
  const sameLoss =
    node !== null && node === watch.lostNode && atMs - watch.lostAtMs < CORE_LIMITS.sameNodeLossMs
  if (sameLoss) return
  watch.streak++
  watch.lostNode = node
  watch.lostAtMs = atMs
}

/** A sandbox came up: the platform works. */
export function noteSandbox(watch: FailureWatch): void {
  watch.streak = 0
}

/** A person says that it may go on: what was counted so far is forgiven. */
export function forgive(watch: FailureWatch): void {
  watch.window.length = 0
  watch.windowAt = 0
  watch.errors = 0
  watch.streak = 0
  watch.lostNode = null
}
