import type { Artifact, Flag } from '@sandlot/protocol'
import { noteTook } from '../hedge/took.ts'
import { CORE_LIMITS } from '../limits.ts'
import { attemptOf, gradeEffect, offerEffect, revokeEffect } from '../run/effects.ts'
import type { EventOf, Next, ReportBody, Sink } from '../run/event.ts'
import { updateFree } from '../run/index.ts'
import type { AgentReport, Attempt, Episode, Run } from '../run/run.ts'
import { timeoutsOf } from '../run/timeouts-of.ts'
import { dueAfter, startPlatformClock, stopClock } from './clock.ts'
import { moveEpisode } from './move.ts'

/** The sandbox is prepared: a lease for the worker that is free, or the wait for one. */
export function beginAgent(
  run: Run,
  episode: Episode,
  event: { readonly atMs: number } & Next,
  effects: Sink,
): void {
  attemptOf(episode).waitAtMs = event.atMs
  if (event.worker === undefined) moveEpisode(run, episode, 'ready', event)
  else offer(run, episode, event, effects)
}

export function applyLeased(
  run: Run,
  episode: Episode,
  event: EventOf<'leased'>,
  effects: Sink,
): void {
  offer(run, episode, event, effects)
}

export function applyTaken(run: Run, episode: Episode, event: EventOf<'lease_taken'>): void {
  const attempt = attemptOf(episode)
  const timeoutMs = timeoutsOf(run, episode)
  const grade = episode.phase === 'grade_offered'
  if (attempt.totalDueMs !== null) attempt.totalDueMs += event.atMs - attempt.waitAtMs
  startPlatformClock(run, attempt)
  if (!grade) attempt.agentSinceMs = event.atMs - run.downMs
  const dueMs = dueAfter(attempt, event.atMs, grade ? timeoutMs.grade : timeoutMs.agent)
  moveEpisode(run, episode, grade ? 'grading' : 'agent', { atMs: event.atMs, dueMs })
}

export function applyReturned(run: Run, episode: Episode, event: EventOf<'lease_returned'>): void {
  endWork(run, episode)
  moveEpisode(run, episode, episode.phase === 'offered' ? 'ready' : 'grade_ready', event)
}

export function applyModelStarted(
  run: Run,
  episode: Episode,
  event: EventOf<'model_started'>,
): void {
  const attempt = attemptOf(episode)
  stopClock(run, episode, event.atMs)
  startPlatformClock(run, attempt)
  const dueMs = dueAfter(attempt, event.atMs, timeoutsOf(run, episode).model)
  moveEpisode(run, episode, 'model', { atMs: event.atMs, dueMs })
}

export function applyModelEnded(run: Run, episode: Episode, event: EventOf<'model_ended'>): void {
  const attempt = attemptOf(episode)
  stopClock(run, episode, event.atMs)
  startPlatformClock(run, attempt)
  if (event.failed === undefined) delete attempt.modelFailed
  else attempt.modelFailed = event.failed
  const leftMs = timeoutsOf(run, episode).agent - attempt.clock.agentMs
  const dueMs = dueAfter(attempt, event.atMs, leftMs)
  moveEpisode(run, episode, 'agent', { atMs: event.atMs, dueMs })
}

export function applyNoted(_run: Run, episode: Episode, event: EventOf<'lease_noted'>): void {
  attemptOf(episode).note = event.note
}

export function applyStopped(
  run: Run,
  episode: Episode,
  event: EventOf<'agent_stopped'>,
  effects: Sink,
): void {
  const { atMs, cause } = event
  const revoke = revokeEffect(episode, cause)
  if (revoke) effects?.push(revoke)
  noteTook(run, episode, 'ended', atMs)
  stopClock(run, episode, atMs)
  attemptOf(episode).stopCause = cause
  moveEpisode(run, episode, 'stopping', { atMs, dueMs: atMs + run.policy.stopMs })
}

/** What it left is waited for: there is nothing to stop. */
export function applyEnded(run: Run, episode: Episode, { atMs }: EventOf<'agent_ended'>): void {
  attemptOf(episode).stopCause = null
  moveEpisode(run, episode, 'stopping', { atMs, dueMs: atMs + CORE_LIMITS.takeUpMs })
}

export function applyReported(
  run: Run,
  episode: Episode,
  event: EventOf<'reported'>,
  effects: Sink,
): void {
  const attempt = attemptOf(episode)
  const { atMs } = event
  if (event.revoke !== undefined) {
    const revoke = revokeEffect(episode, event.revoke)
    if (revoke) effects?.push(revoke)
  }
  noteTook(run, episode, 'ended', atMs)
  stopClock(run, episode, atMs)
  endWork(run, episode)
  keepReport(attempt, event.outcome, event.report)
  // The state of an agent that used up all its time is graded, and that takes time of its own.
  if (attempt.totalDueMs !== null && attempt.totalDueMs <= atMs) attempt.totalDueMs = null
  beginGrade(run, episode, event, effects)
}

export function applyGradeRetried(
  run: Run,
  episode: Episode,
  event: EventOf<'grade_retried'>,
  effects: Sink,
): void {
  const revoke = revokeEffect(episode, event.cause)
  if (revoke) effects?.push(revoke)
  stopClock(run, episode, event.atMs)
  endWork(run, episode)
  if (event.workerLost) episode.workersLost++
  else attemptOf(episode).gradeTries++
  beginGrade(run, episode, event, effects)
}

/** Nothing is in progress any more: no token is good, and the worker's slot is free. */
export function endWork(run: Run, episode: Episode): void {
  const attempt = attemptOf(episode)
  const worker = attempt.worker === null ? undefined : run.workers.get(attempt.worker)
  attempt.token = null
  attempt.worker = null
  if (!worker) return
  worker.leases.delete(episode)
  updateFree(run, worker)
}

export function keepReport(
  attempt: Attempt,
  outcome: AgentReport['outcome'],
  report: ReportBody,
): void {
  attempt.report = {
    outcome,
    error: report.error ?? null,
    dataJson: report.dataJson ?? null,
    dataBlob: report.dataBlob ?? null,
    artifacts: report.artifacts ?? [],
  }
  if (report.agentMs !== undefined) attempt.clock.agentMs = report.agentMs
  if (report.modelMs !== undefined) attempt.clock.modelMs = report.modelMs
  addFlags(attempt, report.flags)
}

/** Of its grade: artifacts beside what its agent left, and data in the place of its data. */
export function keepOfGrade(
  attempt: Attempt,
  {
    artifacts = [],
    dataJson,
  }: { readonly artifacts?: readonly Artifact[]; readonly dataJson?: string },
): void {
  if (attempt.report === null) return
  const all = [...attempt.report.artifacts, ...artifacts].slice(0, CORE_LIMITS.artifacts)
  const data = dataJson === undefined ? {} : { dataJson, dataBlob: null }
  attempt.report = { ...attempt.report, artifacts: all, ...data }
}

export function addFlags(attempt: Attempt, flags: readonly Flag[] | undefined): void {
  for (const flag of flags ?? []) if (!attempt.flags.includes(flag)) attempt.flags.push(flag)
}

export function takeToken(run: Run, attempt: Attempt, next: Next): void {
  attempt.token = next.token ?? null
  attempt.worker = next.worker ?? null
  if (next.token !== undefined) run.nextToken = Math.max(run.nextToken, next.token + 1)
}

function beginGrade(
  run: Run,
  episode: Episode,
  event: { readonly atMs: number } & Next,
  effects: Sink,
): void {
  const attempt = attemptOf(episode)
  const { atMs } = event
  attempt.waitAtMs = atMs
  if (event.worker !== undefined) {
    offer(run, episode, event, effects)
  } else if (event.token !== undefined) {
    takeToken(run, attempt, event)
    startPlatformClock(run, attempt)
    const dueMs = dueAfter(attempt, atMs, timeoutsOf(run, episode).grade) + CORE_LIMITS.stopMs
    moveEpisode(run, episode, 'grading', { atMs, dueMs })
    effects?.push(gradeEffect(episode))
  } else {
    moveEpisode(run, episode, 'grade_ready', { atMs })
  }
}

function offer(
  run: Run,
  episode: Episode,
  event: { readonly atMs: number } & Next,
  effects: Sink,
): void {
  const attempt = attemptOf(episode)
  takeToken(run, attempt, event)
  startPlatformClock(run, attempt)
  const worker = run.workers.get(event.worker ?? '')
  if (worker) {
    worker.leases.add(episode)
    updateFree(run, worker)
  }
  const to = attempt.report === null ? 'offered' : 'grade_offered'
  // What the worker is told is what the row says.
  if (to === 'offered') attempt.policyVersion = run.policyVersion
  const dueMs = event.atMs + (run.policy.stopMs > 0 ? CORE_LIMITS.beginMs : CORE_LIMITS.leaseMs)
  moveEpisode(run, episode, to, { atMs: event.atMs, dueMs })
  effects?.push(offerEffect(run, episode))
}
