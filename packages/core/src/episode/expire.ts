import { CORE_LIMITS } from '../limits.ts'
import { addressOf, type Decision, emit } from '../run/decision.ts'
import { attemptOf } from '../run/effects.ts'
import type { Episode } from '../run/run.ts'
import { dropLease } from '../worker/drop-lease.ts'
import { platformMs } from './clock.ts'
import { endAttempt } from './decide-end.ts'
import { gradeFailed } from './decide-grade.ts'
import { overruledBy, UNKNOWN_FATE } from './fate.ts'
import { agentTimedOut, loseStopped } from './finish-agent.ts'
import { late } from './late.ts'
import { settle } from './settle.ts'

/** The deadline of an episode's phase is met. Always moves the deadline or the episode. */
export function expire(decision: Decision, episode: Episode): void {
  if (episode.phase === 'backoff') {
    emit(decision, { type: 'requeued', episode: episode.index })
  } else if (episode.phase === 'releasing') {
    expireRelease(decision, episode)
  } else if (!extendDeadline(decision, episode)) {
    expirePhase(decision, episode)
  }
}

function expireRelease(decision: Decision, episode: Episode): void {
  const tries = attemptOf(episode).releaseTries + 1
  if (tries < CORE_LIMITS.releaseTries) {
    emit(decision, { type: 'release_retried', ...addressOf(episode) })
  } else {
    const ending = episode.isHedge ? undefined : overruledBy(decision.run, episode, UNKNOWN_FATE)
    emit(decision, { type: 'torn_down', ...addressOf(episode), ...(ending ? { ending } : {}) })
  }
}

/** What the platform took from the phase is given back before anything is called late. */
function extendDeadline(decision: Decision, episode: Episode): boolean {
  const { run, nowMs } = decision
  const attempt = attemptOf(episode)
  const worker = attempt.worker === null ? undefined : run.workers.get(attempt.worker)
  const detachedAtMs = worker?.detachedAtMs ?? null
  if (worker && detachedAtMs !== null && detachedAtMs < nowMs) {
    const lagMs = nowMs - detachedAtMs
    emit(decision, { type: 'worker_lagged', worker: worker.name, lagMs })
  }
  const owedMs = platformMs(run, attempt) - attempt.extendedMs
  const byMs = detachedAtMs === null ? owedMs : Math.max(owedMs, CORE_LIMITS.extensionMsMin)
  if (byMs <= 0) return false
  emit(decision, { type: 'clock_extended', ...addressOf(episode), byMs })
  return true
}

function expirePhase(decision: Decision, episode: Episode): void {
  switch (episode.phase) {
    case 'creating':
      end(decision, episode, 'infra_create', said('no sandbox came up', 'create'))
      break
    case 'setup':
      end(decision, episode, 'setup_error', said('the set-up did not end', 'setup'))
      break
    case 'offered':
    case 'grade_offered':
      dropLease(decision, episode, { cause: 'the worker did not take the lease', counts: true })
      break
    case 'agent':
      agentTimedOut(decision, episode, said('the agent used up its time', 'agent'))
      break
    case 'stopping':
      if (attemptOf(episode).stopCause === null) dropLease(decision, episode, NOT_TAKEN_UP)
      else loseStopped(decision, episode, 'its sandbox did not answer when it was to end')
      break
    case 'model':
      end(decision, episode, 'model_error', said('a model call did not end', 'model'))
      break
    case 'grading':
      gradeFailed(decision, episode, {
        outcome: 'grade_timeout',
        cause: said('the grader did not end', 'grade'),
        // The daemon ends its command in time, and says so: where nothing is heard of that, it is not the command that is late.
        ...(attemptOf(episode).worker === null ? { fault: 'platform' } : {}),
      })
      break
    default:
      throw new Error(`a deadline is set in the phase ${episode.phase}`)
  }

  function said(what: string, phase: Parameters<typeof late>[3]): string {
    return late(decision, episode, what, phase)
  }
}

const NOT_TAKEN_UP = { cause: 'what it left could not be taken up', counts: true } as const

function end(
  decision: Decision,
  episode: Episode,
  outcome: 'infra_create' | 'setup_error' | 'model_error',
  cause: string,
): void {
  const ending = settle(decision.run, episode, { outcome, cause: [cause] })
  endAttempt(decision, episode, { ending, revoke: cause })
}
