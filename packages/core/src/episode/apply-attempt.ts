import { startMember } from '../group/apply-group.ts'
import { yieldToOther } from '../hedge/apply-hedge.ts'
import { noteTook } from '../hedge/took.ts'
import { CORE_LIMITS } from '../limits.ts'
import { OUTCOME_RULES } from '../outcome/rules.ts'
import { countCause } from '../report/causes.ts'
import {
  acquireEffect,
  attemptOf,
  releaseEffect,
  revokeEffect,
  setupEffect,
} from '../run/effects.ts'
import type { EventOf, Sink } from '../run/event.ts'
import { notePlatformFailure, noteSandbox } from '../run/failures.ts'
import type { Usage } from '../run/input.ts'
import { ownClock } from '../run/own-clock.ts'
import type { Attempt, Episode, Run } from '../run/run.ts'
import { timeoutsOf } from '../run/timeouts-of.ts'
import { addFlags, beginAgent, endWork, keepOfGrade, keepReport, takeToken } from './apply-lease.ts'
import { newAttempt } from './attempt.ts'
import { dueAfter, startPlatformClock, stopClock } from './clock.ts'
import { closeAttempt, endEpisode } from './close.ts'
import { leavesOf } from './leave.ts'
import { moveEpisode } from './move.ts'

export function applyAdmitted(
  run: Run,
  episode: Episode,
  event: EventOf<'admitted'>,
  effects: Sink,
): void {
  const { create, total } = timeoutsOf(run, episode)
  const attempt = newAttempt(run, event.atMs, event.atMs - episode.phaseAtMs)
  attempt.totalDueMs = total === null ? null : event.atMs + total
  episode.attempt = event.attempt
  episode.made = event.attempt
  episode.current = attempt
  run.totals.attempts++
  if (event.attempt > 1) run.totals.retries++
  const dueMs = dueAfter(attempt, event.atMs, create)
  moveEpisode(run, episode, 'creating', { atMs: event.atMs, dueMs })
  if (episode.startedMs === null) {
    episode.startedMs = ownClock(run, event.atMs)
    if (episode.peers) startMember(run, episode.peers, event.atMs)
  }
  effects?.push(acquireEffect(episode))
}

export function applyBound(
  run: Run,
  episode: Episode,
  event: EventOf<'sandbox_bound'>,
  effects: Sink,
): void {
  const attempt = attemptOf(episode)
  noteTook(run, episode, 'ended', event.atMs)
  attempt.sandbox = event.sandbox
  attempt.node = event.node
  attempt.clock.createMs = event.createMs
  noteSandbox(run.failures)
  startPlatformClock(run, attempt)
  if (!run.policy.setup) {
    beginAgent(run, episode, event, effects)
    return
  }
  takeToken(run, attempt, event)
  const dueMs = dueAfter(attempt, event.atMs, timeoutsOf(run, episode).setup) + CORE_LIMITS.stopMs
  moveEpisode(run, episode, 'setup', { atMs: event.atMs, dueMs })
  effects?.push(setupEffect(episode))
}

export function applySetupDone(
  run: Run,
  episode: Episode,
  event: EventOf<'setup_done'>,
  effects: Sink,
): void {
  noteTook(run, episode, 'ended', event.atMs)
  stopClock(run, episode, event.atMs)
  attemptOf(episode).token = null
  beginAgent(run, episode, event, effects)
}

/** Moves the deadline of the phase, and of the whole attempt, by what was not theirs. */
export function applyExtended(run: Run, episode: Episode, event: EventOf<'clock_extended'>): void {
  const attempt = attemptOf(episode)
  if (attempt.totalDueMs !== null) attempt.totalDueMs += event.byMs
  if (episode.dueMs === null) return
  run.index.due.remove(episode)
  episode.dueMs += event.byMs
  run.index.due.push(episode)
  attempt.extendedMs += event.byMs
}

export function applyAttemptEnded(
  run: Run,
  episode: Episode,
  event: EventOf<'attempt_ended'>,
  effects: Sink,
): void {
  const attempt = attemptOf(episode)
  const { ending, atMs } = event
  if (event.revoke !== undefined) {
    const revoke = revokeEffect(episode, event.revoke)
    if (revoke) effects?.push(revoke)
  }
  if (ending.outcome === 'infra_create' || ending.outcome === 'infra_lost') {
    notePlatformFailure(run.failures, attempt.node, atMs)
  }
  const isVerdict = ending.outcome !== null && OUTCOME_RULES[ending.outcome].valid
  noteTook(run, episode, isVerdict ? 'ended' : 'stopped', atMs)
  stopClock(run, episode, atMs)
  endWork(run, episode)
  if (event.report) keepReport(attempt, null, event.report)
  keepOfGrade(attempt, event)
  addFlags(attempt, event.flags)
  if (event.usage) keepUsage(run, attempt, event)
  if (event.sandbox !== undefined) attempt.sandbox = event.sandbox
  if (ending.next === 'retry' && ending.workerLost) episode.workersLost++
  attempt.ending = ending
  attempt.endedIn = episode.phase
  const yields = yieldToOther(run, episode)
  if (yields && ending.outcome !== null) {
    countCause(run.totals.causes, { ...ending, retried: true, key: episode.key })
  }
  if (event.gone) {
    closeAttempt(run, episode, atMs, effects)
    return
  }
  attempt.leaves = leavesOf(run, episode, ending)
  if (attempt.leaves?.snapshot) run.kept++
  const takesMs = CORE_LIMITS.teardownMs + (attempt.leaves ? CORE_LIMITS.leaveMs : 0)
  moveEpisode(run, episode, 'releasing', { atMs, dueMs: atMs + takesMs })
  startPlatformClock(run, attempt)
  effects?.push(releaseEffect(episode))
}

export function applyReleaseRetried(
  run: Run,
  episode: Episode,
  event: EventOf<'release_retried'>,
  effects: Sink,
): void {
  attemptOf(episode).releaseTries++
  run.index.due.remove(episode)
  episode.dueMs = event.atMs + CORE_LIMITS.teardownMs
  run.index.due.push(episode)
  effects?.push(releaseEffect(episode))
}

export function applyTornDown(
  run: Run,
  episode: Episode,
  event: EventOf<'torn_down'>,
  effects: Sink,
): void {
  const attempt = attemptOf(episode)
  stopClock(run, episode, event.atMs)
  if (event.ending) {
    attempt.ending = event.ending
    if (event.ending.outcome === 'infra_lost') {
      notePlatformFailure(run.failures, attempt.node, event.atMs)
    }
  }
  addFlags(attempt, event.flags)
  if (event.usage) keepUsage(run, attempt, event)
  if (event.left) attempt.left = event.left
  if (attempt.leaves?.snapshot && !event.left?.kept) run.kept--
  closeAttempt(run, episode, event.atMs, effects)
}

/** Told once of an attempt: when its sandbox is gone. */
function keepUsage(
  run: Run,
  attempt: Attempt,
  event: { readonly usage?: Usage; readonly attempt: number },
): void {
  const { usage } = event
  attempt.usage = usage ?? null
  if (usage?.costMicros === undefined) return
  run.totals.cost ??= { micros: 0, retriesMicros: 0 }
  run.totals.cost.micros += usage.costMicros
  if (event.attempt > 1) run.totals.cost.retriesMicros += usage.costMicros
}

export function applyCancelled(
  run: Run,
  episode: Episode,
  event: EventOf<'episode_cancelled'>,
  effects: Sink,
): void {
  const ending = event.ending ?? {
    next: 'final' as const,
    outcome: 'cancelled_user' as const,
    valid: false,
    reward: null,
    rewards: null,
    cause: [event.cause],
  }
  endEpisode(run, episode, ending, event.atMs, effects)
}
