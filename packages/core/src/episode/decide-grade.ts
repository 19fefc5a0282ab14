import type { Artifact, Flag } from '@sandlot/protocol'
import {
  addressOf,
  type Decision,
  emit,
  fencedEpisode,
  ignore,
  nextGrade,
} from '../run/decision.ts'
import { attemptOf } from '../run/effects.ts'
import type { InputOf } from '../run/input.ts'
import type { Episode } from '../run/run.ts'
import { endAttempt } from './decide-end.ts'
import { late } from './late.ts'
import { checkReward } from './reward.ts'
import { settle } from './settle.ts'

export function decideGraded(decision: Decision, input: InputOf<'graded'>): void {
  const episode = fencedEpisode(decision, input)
  if (!episode) return
  if (episode.phase !== 'grading' || episode.current?.worker !== null) {
    ignore(decision, 'the daemon does not grade it')
    return
  }
  const { result } = input
  if (result.kind === 'verdict') {
    gradeGiven(decision, episode, result, input)
  } else if (result.kind === 'timed_out') {
    const what = late(decision, episode, 'the grader did not end', 'grade')
    const cause = result.said ? `${what}: ${result.said}` : what
    gradeFailed(decision, episode, { outcome: 'grade_timeout', cause, left: input })
  } else {
    gradeFailed(decision, episode, { outcome: 'grade_error', ...result, left: input })
  }
}

/** What a grade leaves beside its verdict. */
export interface GradeLeft {
  readonly flags?: readonly Flag[]
  readonly artifacts?: readonly Artifact[]
  readonly dataJson?: string
}

/** Why there is no verdict. */
export interface GradeFailure {
  readonly outcome: 'grade_error' | 'grade_timeout'
  readonly cause: string
  /** The platform's: nobody can say what the grader would have given. */
  readonly fault?: 'platform'
  readonly left?: GradeLeft
}

/** A grader gave something: a verdict, if it is one. */
export function gradeGiven(
  decision: Decision,
  episode: Episode,
  given: { readonly reward?: unknown; readonly rewards?: unknown; readonly cause?: string },
  left: GradeLeft,
): void {
  const verdict = checkReward(given)
  if (verdict === null || typeof verdict === 'string') {
    gradeFailed(decision, episode, {
      outcome: 'grade_error',
      cause: verdict ?? 'the grader gave no verdict',
      left,
    })
    return
  }
  const report = attemptOf(episode).report
  const outcome = report?.outcome ?? 'graded'
  const cause = [report?.error, given.cause].filter((line) => line !== undefined && line !== null)
  const settled = settle(decision.run, episode, { outcome, cause, verdict })
  const proven = settled.next === 'final' && decision.run.policy.grade === 'daemon'
  const ending = proven ? { ...settled, proven: true as const } : settled
  endAttempt(decision, episode, { ending, ...leftOf(left) })
}

/**
 * No verdict: the grade alone is tried again, then it is the grader's failure. An agent that had
 * used up its time or a budget ends as that all the same, with 0: it was to be graded as it stood.
 * Where it was the platform that kept the grader from giving one, that would be a zero of ours.
 */
export function gradeFailed(decision: Decision, episode: Episode, failure: GradeFailure): void {
  const { run, nowMs } = decision
  const attempt = attemptOf(episode)
  const inTime = attempt.totalDueMs === null || nowMs < attempt.totalDueMs
  if (inTime && attempt.gradeTries < run.policy.retry.grade) {
    emit(decision, {
      type: 'grade_retried',
      ...addressOf(episode),
      cause: failure.cause,
      ...nextGrade(run),
    })
    return
  }
  endUngraded(decision, episode, failure)
}

/** The attempt's end without a verdict. */
export function endUngraded(
  decision: Decision,
  episode: Episode,
  { outcome, cause, fault, left = {} }: GradeFailure,
): void {
  const { run } = decision
  const report = attemptOf(episode).report
  const own = report?.outcome === 'agent_timeout' || report?.outcome === 'limit' ? report : null
  const before = own?.error ? [own.error] : []
  const ending =
    own?.outcome && fault !== 'platform'
      ? settle(run, episode, { outcome: own.outcome, cause: [...before, cause] })
      : settle(run, episode, { outcome, cause: [cause, ...before] })
  endAttempt(decision, episode, { ending, revoke: cause, ...leftOf(left) })
}

function leftOf({ flags = [], artifacts = [], dataJson }: GradeLeft): GradeLeft {
  return {
    ...(dataJson === undefined ? {} : { dataJson }),
    ...(flags.length > 0 ? { flags } : {}),
    ...(artifacts.length > 0 ? { artifacts } : {}),
  }
}
