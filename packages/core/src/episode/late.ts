import type { Decision } from '../run/decision.ts'
import { attemptOf } from '../run/effects.ts'
import type { Episode } from '../run/run.ts'
import { timeoutsOf } from '../run/timeouts-of.ts'

type TimedPhase = 'create' | 'setup' | 'agent' | 'model' | 'grade'

/** What did not end in its time, with the time that it had: that of its phase, or of the attempt as a whole. */
export function late(
  { run, nowMs }: Decision,
  episode: Episode,
  what: string,
  phase: TimedPhase,
): string {
  const timeoutMs = timeoutsOf(run, episode)
  const { totalDueMs } = attemptOf(episode)
  const isTotal = totalDueMs !== null && totalDueMs <= nowMs && timeoutMs.total !== null
  return isTotal
    ? `${what}: the attempt had ${inWords(timeoutMs.total as number)}`
    : `${what} within ${inWords(timeoutMs[phase])}`
}

/** As somebody would have set it: never rounded. */
function inWords(ms: number): string {
  for (const [unit, scale] of UNITS) if (ms % scale === 0) return `${ms / scale}${unit}`
  return `${ms}ms`
}

const UNITS = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const
