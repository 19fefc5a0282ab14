import { addressOf, type Decision, emit, nextGrade } from '../run/decision.ts'
import { attemptOf } from '../run/effects.ts'
import type { ReportBody } from '../run/event.ts'
import type { Episode } from '../run/run.ts'
import { endAttempt } from './decide-end.ts'
import type { Reward } from './reward.ts'
import { settle } from './settle.ts'

export interface AgentEnd {
  readonly outcome: 'graded' | 'agent_timeout' | 'limit'
  readonly body: ReportBody
  readonly cause: readonly string[]
  readonly verdict?: Reward
  readonly revoke?: string
}

/** Grades what is there, unless nobody grades or the attempt is made again anyhow. */
export function finishAgent(decision: Decision, episode: Episode, end: AgentEnd): void {
  const { run } = decision
  const { outcome, cause, body, verdict } = end
  const revoke = end.revoke === undefined ? {} : { revoke: end.revoke }
  const graded = run.policy.grade !== 'none'
  if (!graded || outcome !== 'graded') {
    const ending = settle(run, episode, { outcome, cause, ...(verdict ? { verdict } : {}) })
    if (!graded || ending.next === 'retry') {
      endAttempt(decision, episode, { ending, report: body, ...revoke })
      return
    }
  }
  emit(decision, {
    type: 'reported',
    ...addressOf(episode),
    outcome,
    report: body,
    ...revoke,
    ...nextGrade(run),
  })
}

/**
 * The agent's clock, or the time of the whole attempt, is used up: what is there is graded. Where the run waits for what the agent
 * left, its worker is only told to stop.
 */
export function agentTimedOut(decision: Decision, episode: Episode, cause: string): void {
  if (decision.run.policy.stopMs > 0) {
    emit(decision, { type: 'agent_stopped', ...addressOf(episode), cause })
  } else {
    finishAgent(decision, episode, {
      outcome: 'agent_timeout',
      body: { error: cause },
      cause: [cause],
      revoke: cause,
    })
  }
}

/**
 * Nothing was heard when it was to end. A sandbox that lives ends what runs in it, so nobody knows whether this one did while the
 * agent's time went by: that is no agent that used it up.
 */
export function loseStopped(decision: Decision, episode: Episode, cause: string): void {
  const { stopCause } = attemptOf(episode)
  const lost = { outcome: 'infra_lost', cause: [cause, stopCause ?? ''] } as const
  endAttempt(decision, episode, { ending: settle(decision.run, episode, lost), revoke: cause })
}

/**
 * An agent that was stopped has left all that it will. `body`: what its worker still said; `revoke`: why its lease is taken away,
 * where it said nothing.
 */
export function finishStopped(
  decision: Decision,
  episode: Episode,
  { body = {}, revoke }: { readonly body?: ReportBody; readonly revoke?: string },
): void {
  const cause = episode.current?.stopCause ?? 'the agent used up its time'
  finishAgent(decision, episode, {
    outcome: 'agent_timeout',
    body: { ...body, error: cause },
    cause: [cause],
    ...(revoke === undefined ? {} : { revoke }),
  })
}
