import { endAttempt } from '../episode/decide-end.ts'
import { endUngraded } from '../episode/decide-grade.ts'
import { finishStopped } from '../episode/finish-agent.ts'
import { giveUp, settle } from '../episode/settle.ts'
import { CORE_LIMITS } from '../limits.ts'
import { addressOf, type Decision, emit, nextGrade } from '../run/decision.ts'
import type { Episode } from '../run/run.ts'

/**
 * A lease ends without a report. What the worker did in the sandbox is unknown, so the agent's part
 * starts again in another one, and no budget pays; a grade alone is given to another worker.
 * `counts`: it is one of the three workers that an episode may lose before it is taken to be what
 * kills them.
 */
export function dropLease(
  decision: Decision,
  episode: Episode,
  loss: { readonly cause: string; readonly counts: boolean },
): void {
  const { run } = decision
  const { cause, counts } = loss
  // Its time is used up, whoever saw to it.
  if (episode.phase === 'stopping' && episode.current?.stopCause !== null) {
    finishStopped(decision, episode, { revoke: cause })
    return
  }
  const last = counts && episode.workersLost + 1 >= CORE_LIMITS.workersLost
  const all = `the episode held ${CORE_LIMITS.workersLost} workers that died`
  const grade = episode.phase === 'grade_offered' || episode.phase === 'grading'
  if (grade && last) {
    // Nobody knows what they would have given: it is no zero of a policy that used up its time.
    const lost = { outcome: 'grade_error', cause: `${all}: ${cause}`, fault: 'platform' } as const
    endUngraded(decision, episode, lost)
  } else if (grade) {
    emit(decision, {
      type: 'grade_retried',
      ...addressOf(episode),
      cause,
      ...(counts ? { workerLost: true } : {}),
      ...nextGrade(run),
    })
  } else {
    const ending = last
      ? settle(run, episode, { outcome: 'episode_error', cause: [all, cause] })
      : giveUp(cause, counts)
    endAttempt(decision, episode, { ending, revoke: cause })
  }
}
